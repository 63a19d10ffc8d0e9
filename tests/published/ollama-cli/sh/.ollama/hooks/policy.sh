#!/bin/sh
# Refuses commands that destroy what nobody can bring back.
payload=$(cat)
case $payload in
*'"tool":"bash"'*) ;;
*) echo '{"permissionDecision": "allow"}'; exit 0 ;;
esac
case $payload in
*'rm -rf'* | *'dd if='* | *mkfs*) echo '{"permissionDecision": "deny", "reason": "this command destroys data"}' ;;
*) echo '{"permissionDecision": "allow"}' ;;
esac
