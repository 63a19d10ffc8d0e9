"""A line for each tool call."""

import json
import sys

call = json.load(sys.stdin)
with open("audit.log", "a") as log:
    log.write(f"{call['session_id']} | {call['tool_name']}\n")
print(json.dumps({"continue": True}))
