"""Refuses commands that destroy what nobody can bring back."""

import json

FORBIDDEN = ("rm -rf", "dd if=", "mkfs")


def on_pre_tool_use(payload: dict) -> dict:
    if payload.get("tool") == "bash":
        command = payload.get("command", "")
        if any(word in command for word in FORBIDDEN):
            return {"permissionDecision": "deny", "reason": "this command destroys data"}
    return {"permissionDecision": "allow"}


if __name__ == "__main__":
    print(json.dumps(on_pre_tool_use(json.loads(input()))))
