"""Refuses what should not be run, by a verdict and by its exit code."""

import json
import sys

command = json.load(sys.stdin).get("tool_input", {}).get("cmd", "")
if "sudo" in command:
    sys.exit(print("sudo is not for agents", file=sys.stderr) or 2)
if "rm -rf /" in command:
    print(json.dumps({"decision": "block", "reason": "this removes everything"}))
else:
    print("{}")
