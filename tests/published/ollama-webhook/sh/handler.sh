#!/bin/sh
# A webhook before inference, one request on standard input and output as inetd gives it: allows, denies, asks, or takes
# a password out.
length=0 token=
while IFS= read -r line; do
    line=$(printf '%s' "$line" | tr -d '\r')
    [ -n "$line" ] || break
    case $(printf '%s' "$line" | tr 'A-Z' 'a-z') in
    content-length:*) length=${line#*: } ;;
    authorization:*) token=${line#*: } ;;
    esac
done
body=$(dd bs=1 count="$length" 2> /dev/null)
status='200 OK'
[ "$token" = 'Bearer t0ken' ] || status='401 Unauthorized'
case $body in
*'launch codes'*) reply='{"permission":"deny","user_message":"that is secret","agent_message":"policy 7"}' ;;
*transfer*) reply='{"permission":"ask","user_message":"a person has to agree"}' ;;
*hunter2*)
    messages=$(printf '%s' "$body" | sed 's/.*"messages":\(\[[^]]*\]\).*/\1/; s/hunter2/***/g')
    reply="{\"permission\":\"modify\",\"messages\":$messages}"
    ;;
*) reply='{"permission":"allow"}' ;;
esac
printf 'HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' \
    "$status" "${#reply}" "$reply"
