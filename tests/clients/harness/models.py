"""Real llama.cpp servers with models whose answer is known: their weights spell one text and stop."""

import pathlib
import queue
import re
import subprocess
import sys
import threading

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"

ANSWER = "Hello, my SSN is 123-45-6789."
SCRIPTS = {
    "text": ANSWER,
    "tool": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
    "think": f"<think>\nplan\n</think>\n\n{ANSWER}",
}


def build(home):
    """Writes the models."""
    home.mkdir(parents=True, exist_ok=True)
    for name, script in SCRIPTS.items():
        options = ["--ctx", "16384", "--script", script]
        maker = [sys.executable, FIXTURES / "make_tiny_gguf.py", home / f"{name}.gguf", *options]
        subprocess.run(maker, check=True, stdout=subprocess.DEVNULL)


def start(home, processes):
    """Starts a server for each model; their addresses by name. The processes go into `processes`."""
    started = {}
    for name in SCRIPTS:
        command = [sys.executable, FIXTURES / "run_llamacpp_server.py", home / f"{name}.gguf", "0"]
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
