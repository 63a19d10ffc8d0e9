"""The Python hook of `cargo xtask bench handlers`, as a function and as a script."""

import json
import sys


def hook(event):
    return {"continue": bool(event["tool_name"])}


if __name__ == "__main__":
    print(json.dumps(hook(json.load(sys.stdin))))
