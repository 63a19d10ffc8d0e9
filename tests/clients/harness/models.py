"""Real llama.cpp servers with models whose answers are known: their weights spell a text and stop."""

import json
import pathlib
import queue
import re
import subprocess
import sys
import threading

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"


def call(name, **arguments):
    """A tool call, as these models write it. The server holds them to the order of arguments in the tool's schema."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


ANSWER = "Hello, my SSN is 123-45-6789."

#: An agent's work: the last answer tells what the calls have come to.
STEPS = [
    call("write", content="The password is swordfish.", path="notes.txt"),
    call("bash", command="rm -rf keep"),
    call("read", path="notes.txt"),
    "The notes are **written**, and the folder stays.",
]

#: What each model says. Of several texts the one whose place is the number of tool results in the conversation.
SCRIPTS = {
    "text": [ANSWER],
    "tool": [call("get_weather", city="Paris")],
    "think": [f"<think>\nplan\n</think>\n\n{ANSWER}"],
    "steps": STEPS,
}

#: Tokens of an agent's conversation: its tools alone are thousands, for a token here is hardly more than a character.
WINDOW = 32768

#: Conversations at a time, and tokens for all of them, where they are not the server's own.
ROOM = {"steps": ("1", str(WINDOW))}


def build(home):
    """Writes the models."""
    home.mkdir(parents=True, exist_ok=True)
    for name, scripts in SCRIPTS.items():
        options = ["--ctx", str(WINDOW), *(word for script in scripts for word in ("--script", script))]
        maker = [sys.executable, FIXTURES / "make_tiny_gguf.py", home / f"{name}.gguf", *options]
        subprocess.run(maker, check=True, stdout=subprocess.DEVNULL)


def start(home, processes):
    """Starts a server for each model; their addresses by name. The processes go into `processes`."""
    started = {}
    for name in SCRIPTS:
        command = [sys.executable, FIXTURES / "run_llamacpp_server.py", home / f"{name}.gguf", "0", *ROOM.get(name, [])]
        started[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        processes.append(started[name])
    pattern = r"listening (http://\S+)"
    return {name: line_with(process, pattern, home / f"{name}.log") for name, process in started.items()}


def line_with(process, pattern, log, seconds=60):
    """The first group of `pattern` in the first line of output that has it; all output goes to the file `log`."""
    found = queue.SimpleQueue()

    def read():
        with open(log, "wb", buffering=0) as file:
            for line in process.stdout:
                file.write(line)
                if match := re.search(pattern, line.decode(errors="replace")):
                    found.put(match.group(1))
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        address = found.get(timeout=seconds)
    except queue.Empty:
        address = None
    if address is None:
        process.kill()
        raise SystemExit(f"no line with {pattern!r} from {process.args}:\n{log.read_text(errors='replace')}")
    return address
