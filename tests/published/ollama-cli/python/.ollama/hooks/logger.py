"""Keeps every tool call that was made, a line each."""

import json
import os
from pathlib import Path


def on_post_tool_use(payload: dict) -> dict:
    log = Path.home() / ".ollama" / "tool_logs.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    entry = dict(payload, project=os.environ["OLLAMA_PROJECT_DIR"], session=os.environ["OLLAMA_SESSION_ID"])
    with log.open("a") as lines:
        lines.write(json.dumps(entry) + "\n")
    return {"logged": True}


if __name__ == "__main__":
    print(json.dumps(on_post_tool_use(json.loads(input()))))
