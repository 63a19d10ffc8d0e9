#!/bin/sh
# Made by `gatehook git install`. `gatehook git uninstall` takes it out, and puts back what was here.
stage=STAGE
kept=$(dirname "$0")/gatehook.kept/$stage
CHAIN
gatehook=PROGRAM
[ -x "$gatehook" ] || gatehook=$(command -v gatehook)
if [ -n "$gatehook" ]; then
    "$gatehook" git hook "$stage" "$@"
    code=$?
else
    echo "gatehook: the program is neither where it was nor on PATH" >&2
    code=127
fi
# What is no answer of the guard's is one that could not be had.
case $code in
0 | 1 | 130) exit "$code" ;;
esac
if [ "$(git config gatehook.onError)" = warn ]; then
    echo "gatehook: the guard of commits could not run; the commit goes on, as gatehook.onError has it" >&2
    exit 0
fi
echo "gatehook: the guard of commits could not run, so no commit is made; \`git config gatehook.onError warn\` lets it through" >&2
exit 1
