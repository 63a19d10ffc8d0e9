#!/bin/sh
# Keeps every tool call that was made, a line each.
mkdir -p "$HOME/.ollama"
payload=$(cat)
printf '%s,"project":"%s","session":"%s"}\n' "${payload%\}}" "$OLLAMA_PROJECT_DIR" "$OLLAMA_SESSION_ID" \
    >> "$HOME/.ollama/tool_logs.jsonl"
echo '{"logged": true}'
