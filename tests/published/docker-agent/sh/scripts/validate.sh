#!/bin/sh
# Refuses what should not be run, by a verdict and by its exit code.
input=$(cat)
case $input in
*sudo*)
    echo 'sudo is not for agents' >&2
    exit 2
    ;;
*'rm -rf /'*)
    echo '{"decision": "block", "reason": "this removes everything"}'
    exit 0
    ;;
esac
echo '{}'
