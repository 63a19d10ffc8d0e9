#!/bin/sh
# Checks its input, judges it, and says how.
input=$(cat)
refuse() {
    printf '{"allow": false, "message": "Error: %s", "metadata": {"error": "Error"}}\n' "$1"
    exit 1
}
case $input in *'"event"'*) ;; *) refuse 'no event' ;; esac
case $input in *'"context"'*) ;; *) refuse 'no context' ;; esac
name=$(printf '%s' "$input" | sed -n 's/.*"hookName":"\([^"]*\)".*/\1/p')
version=$(printf '%s' "$input" | sed -n 's/.*"hookVersion":"\([^"]*\)".*/\1/p')
allow=true message="looked at"
case $input in *'/etc/'*) allow=false message="system files are not for tools" ;; esac
printf '{"allow": %s, "message": "%s", "metadata": {"by": "%s %s"}}\n' "$allow" "$message" "$name" "$version"
