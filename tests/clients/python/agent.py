"""An agent in a home of its own, whose model is a real server's, with a hook on every event that writes down what it is
told, and a guard."""

import json
import os
import subprocess
import sys

from conftest import STACK

#: Events that a hook writes down.
EVENTS = """
    session_start session_end user_prompt_submit turn_start turn_end before_llm_call pre_inference post_inference
    after_llm_call tool_input_transform tool_guard pre_tool_use permission_request on_tool_approval_decision
    tool_response_transform post_tool_use post_tool_use_failure stop on_user_input notification on_error
""".split()

#: Longer than anything here may take, in seconds.
PATIENCE = 120


class Home:
    """Where an agent works, and what its user has configured."""

    def __init__(self, folder, model, guard):
        """`guard` is the text of a Python program: a `pre_tool_use` hook."""
        self.workspace = folder / "work"
        self.log = folder / "log.jsonl"
        config = folder / "home/.config/gatehook/gatehook.yaml"
        for directory in (self.workspace, config.parent):
            directory.mkdir(parents=True)
        program = folder / "guard.py"
        program.write_text(guard)
        writes = {"name": "log", "type": "command", "command": f"cat >> {self.log}; echo >> {self.log}"}
        hooks = {event: [{"hooks": [writes]}] for event in EVENTS}
        guards = {"name": "guard", "type": "command", "command": f"{sys.executable} {program}"}
        hooks["pre_tool_use"].append({"matcher": "write|bash", "hooks": [guards]})
        self.model = f"openai/{model}"
        models = {self.model: {"base_url": STACK["upstream"], "window": STACK["window"]}}
        config.write_text(json.dumps({"hooks": hooks, "models": models}))
        self.environment = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], "TERM": "xterm-256color"}

    def command(self, command, *arguments):
        return [os.environ["GATEHOOK_BIN"], command, *arguments, "--model", self.model]

    def run(self, prompt, *arguments):
        """Runs `gatehook run` to its end; what it printed, and its reports."""
        ran = subprocess.run(
            self.command("run", prompt, "--json", *arguments),
            cwd=self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return ran, [json.loads(line) for line in ran.stdout.splitlines()]

    def file(self, name, text):
        """A file of the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def told(self, event=None):
        """What the hooks were told, in order; of one event, or of all."""
        told = [json.loads(line) for line in self.log.read_text().splitlines() if line]
        return [it for it in told if event in (None, it["hook_event_name"])]

    def events(self):
        return [told["hook_event_name"] for told in self.told()]
