#!/bin/sh
# A line for each tool call.
input=$(cat)
field() { printf '%s' "$input" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
echo "$(field session_id) | $(field tool_name)" >> ./audit.log
echo '{"continue": true}'
