"""The Python worker of `cargo xtask bench handlers`: a script around the same function, with a loop."""

import json
import sys

from hook import hook

for line in sys.stdin:
    print(json.dumps(hook(json.loads(line))), flush=True)
