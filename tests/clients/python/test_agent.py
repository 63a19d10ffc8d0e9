"""The agent with a real model server: `gatehook run` and `gatehook chat` do a task of three tool calls. A guard rewrites
the first and denies the second."""

import json

import pytest
from agent import PATIENCE, Home
from terminal import Terminal

PROMPT = "Write the notes, tidy up, and read the notes again."

#: What the model wants to write, what the guard makes of it, and why nothing is removed.
WANTED = "The password is swordfish."
WRITTEN = "The password is [masked]."
REASON = "keep stays where it is"

#: The model's last answer, as it says it and as a terminal shows it.
SAID = "The notes are **written**, and the folder stays."
SHOWN = "The notes are written, and the folder stays."

GUARD = f"""
import json, sys

told = json.load(sys.stdin)
tool, tool_input = told["tool_name"], told["tool_input"]
if tool == "write":
    changed = tool_input | {{"content": tool_input["content"].replace("swordfish", "[masked]")}}
    print(json.dumps({{"hook_specific_output": {{"updated_input": changed}}}}))
elif "rm -rf" in tool_input["command"]:
    print({REASON!r}, file=sys.stderr)
    sys.exit(2)
"""

ASKED = ["turn_start", "before_llm_call", "pre_inference", "post_inference", "after_llm_call"]
JUDGED = ["tool_input_transform", "tool_guard", "pre_tool_use"]
RAN = ["on_tool_approval_decision", "tool_response_transform", "post_tool_use", "turn_end"]
DENIED = ["on_tool_approval_decision", "tool_response_transform", "turn_end"]


@pytest.fixture
def home(tmp_path, seen_steps):
    home = Home(tmp_path, seen_steps.model, GUARD)
    home.file("keep/precious.txt", "precious")
    return home


def check(home, seen, decisions, asking=(), ending=()):
    """What the task has done, what the model was told, and what the hooks were: `decisions` on the calls and who took
    them, and the events of asking a person and of waiting for one."""
    assert (home.workspace / "notes.txt").read_text() == WRITTEN
    assert (home.workspace / "keep/precious.txt").exists()

    (write, wrote, _), (bash, removed, denial), (read, reads, notes) = told_to_the_model(seen)
    assert (write, bash, read) == ("write", "bash", "read")
    # A model's own words stay in its conversation; what came of them is the result.
    assert wrote == {"path": "notes.txt", "content": WANTED}
    assert removed == {"command": "rm -rf keep"}
    assert reads == {"path": "notes.txt"}
    assert REASON in denial
    assert WRITTEN in notes

    assert home.events() == [
        *("session_start", "user_prompt_submit"),
        # What a guard has changed is judged once more.
        *ASKED, *JUDGED, "tool_guard", *asking, *RAN,
        *ASKED, *JUDGED, *DENIED,
        *ASKED, *JUDGED, *RAN,
        *ASKED, "stop", "turn_end",
        *ending, "session_end",
    ]  # fmt: skip
    assert [told["tool_input"] for told in home.told("tool_input_transform")] == [wrote, removed, reads]
    settled = home.told("on_tool_approval_decision")
    assert [(told["approval_decision"], told["approval_source"]) for told in settled] == decisions
    assert [told["tool_input"] for told in settled] == [wrote | {"content": WRITTEN}, removed, reads]


def told_to_the_model(seen):
    """Name, arguments and result of each call, as the last question to the server had them. Each question before it
    had those that there were."""
    asked = [request["body"]["messages"] for request in seen.upstream()]
    assert [request["path"] for request in seen.upstream()] == 4 * ["/v1/chat/completions"]
    assert [sum(message["role"] == "tool" for message in messages) for messages in asked] == [0, 1, 2, 3]
    last = asked[-1]
    results = {message["tool_call_id"]: message["content"] for message in last if message["role"] == "tool"}
    calls = [(call["id"], call["function"]) for message in last for call in message.get("tool_calls") or []]
    return [(call["name"], json.loads(call["arguments"]), results[identity]) for identity, call in calls]


def test_a_run_does_a_task_of_three_calls(home, seen_steps):
    ran, reports = home.run(PROMPT, "--mode", "autonomous")
    assert ran.returncode == 0, ran
    [done] = [it for it in reports if it["type"] == "done"]
    assert (done["text"], done["reason"]) == (SAID, "normal")
    denied = "deny", "pre_tool_use_hook_deny"
    check(home, seen_steps, [("allow", "yolo"), denied, ("allow", "yolo")])


def test_a_chat_asks_and_does_a_task_of_three_calls(home, seen_steps):
    with Terminal(home.command("chat"), home.workspace, home.environment, PATIENCE) as terminal:
        terminal.sees("Ask for something")
        terminal.types(f"{PROMPT}\r")
        terminal.sees("May write run?")
        dialog = terminal.sees("y yes, once")
        assert f"+{WRITTEN}" in dialog
        assert not (home.workspace / "notes.txt").exists()
        terminal.types("y")
        end = terminal.sees(SHOWN)
        assert REASON in end, end
        terminal.types("\x04")
        assert terminal.ends() == 0
    decisions = [("allow", "user_approved"), ("deny", "pre_tool_use_hook_deny"), ("allow", "readonly_hint")]
    check(home, seen_steps, decisions, asking=["permission_request", "on_user_input"], ending=["on_user_input"])
