"""Checks its input, judges it, and says how."""

import json
import sys


def judge(given: dict) -> dict:
    arguments = json.dumps(given["context"].get("args", {}))
    by = "{hookName} {hookVersion}".format(**given["metadata"])
    if "/etc/" in arguments:
        return {"allow": False, "message": "system files are not for tools", "metadata": {"by": by}}
    return {"allow": True, "message": "looked at", "metadata": {"by": by}}


try:
    given = json.load(sys.stdin)
    if "event" not in given or "context" not in given:
        raise ValueError("no event or no context")
    print(json.dumps(judge(given)))
except Exception as error:
    print(json.dumps({"allow": False, "message": f"Error: {error}", "metadata": {"error": type(error).__name__}}))
    sys.exit(1)
