"""Servers of the Model Context Protocol that others wrote: their tools are offered to a model, called and hooked by
`gatehook run`, over standard input and output and over HTTP."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest
from harness.models import line_with

EVERYTHING = pathlib.Path(os.environ["NODE_PATH"], "@modelcontextprotocol/server-everything/dist/index.js")
TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}
STDIO = {"command": "node", "args": [str(EVERYTHING), "stdio"]}
EVENTS = ["tool_input_transform", "tool_guard", "pre_tool_use", "tool_response_transform", "post_tool_use"]


@pytest.fixture(scope="session")
def over_http(tmp_path_factory):
    """The address of the npm server over streamable HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["node", str(EVERYTHING), "streamableHttp"]
    environment = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        line_with(process, r"listening on port (\d+)", tmp_path_factory.mktemp("everything") / "log")
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        process.wait()


class Session:
    """What one run of the agent did."""

    def __init__(self, folder, server, calls, hooks=None):
        home = folder / "home"
        config = home / ".config/gatehook/gatehook.yaml"
        config.parent.mkdir(parents=True)
        told = folder / "told.jsonl"
        write = {"type": "command", "command": f"cat >> {told}; echo >> {told}"}
        group = [{"matcher": "mcp__.*", "hooks": [write]}]
        all_hooks = {event: group + (hooks or {}).get(event, []) for event in EVENTS}
        config.write_text(json.dumps({"mcp_servers": {"theirs": server}, "hooks": all_hooks}))
        answers = [{"match": name, "tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
        script = folder / "script.jsonl"
        script.write_text("\n".join(map(json.dumps, [*answers, {"text": "Done."}])))
        command = [os.environ["GATEHOOK_BIN"], "run", "Go.", "--json", "--replay", script, "--allow", "mcp__theirs__*"]
        environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self.ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
        self.reports = [json.loads(line) for line in self.ran.stdout.splitlines()]
        self.told = [json.loads(line) for line in told.read_text().splitlines() if line] if told.exists() else []

    def results(self):
        return [(it["output"], it.get("error")) for it in self.reports if it["type"] == "tool_result"]

    def notices(self):
        return [it["text"] for it in self.reports if it["type"] == "notice"]


def check(session, name, arguments):
    """Every hook on the way of a call was told of it, and the agent went on to its end."""
    assert session.ran.returncode == 0, session.ran
    assert session.notices() == []
    assert [told["hook_event_name"] for told in session.told] == EVENTS
    assert all(told["tool_name"] == name for told in session.told)
    assert session.told[0]["tool_input"] == arguments
    assert session.told[1]["tool_category"] == "mcp"


def test_a_server_from_pypi(tmp_path):
    name, arguments = "mcp__theirs__convert_time", {
        "source_timezone": "UTC",
        "time": "12:00",
        "target_timezone": "Asia/Tokyo",
    }
    session = Session(tmp_path, TIME, [(name, arguments)])
    check(session, name, arguments)
    [(output, error)] = session.results()
    assert error is None and "T21:00:00+09:00" in output


def test_a_failure_of_theirs_is_the_tools(tmp_path):
    name, arguments = "mcp__theirs__get_current_time", {"timezone": "Nowhere/Land"}
    session = Session(tmp_path, TIME, [(name, arguments)])
    check(session, name, arguments)
    [(output, error)] = session.results()
    assert error == "other" and "Nowhere/Land" in output


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_server_from_npm(tmp_path, way, request):
    server = STDIO if way == "stdio" else request.getfixturevalue("over_http")
    name, arguments = "mcp__theirs__get-sum", {"a": 2, "b": 3}
    session = Session(tmp_path, server, [(name, arguments)])
    check(session, name, arguments)
    [(output, error)] = session.results()
    assert error is None and "5" in output


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_what_is_no_text_is_noted(tmp_path, way, request):
    server = STDIO if way == "stdio" else request.getfixturevalue("over_http")
    session = Session(tmp_path, server, [("mcp__theirs__get-tiny-image", {})])
    [(output, error)] = session.results()
    assert error is None and "[image: image/png, " in output


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_hook_rewrites_one_call_and_denies_another(tmp_path, way, request):
    server = STDIO if way == "stdio" else request.getfixturevalue("over_http")
    rewrite = json.dumps({"hook_specific_output": {"updated_input": {"message": "changed"}}})
    hooks = {
        "tool_input_transform": [
            {"matcher": ".*echo", "hooks": [{"type": "command", "command": f"echo '{rewrite}'"}]},
        ],
        "tool_guard": [
            {"matcher": ".*get-env", "hooks": [{"type": "command", "command": "echo keep out >&2; exit 2"}]},
        ],
    }
    calls = [("mcp__theirs__echo", {"message": "as it was"}), ("mcp__theirs__get-env", {})]
    session = Session(tmp_path, server, calls, hooks)
    assert session.ran.returncode == 0, session.ran
    outputs = [output for output, _ in session.results()]
    assert outputs[0] == "Echo: changed"
    assert "PATH" not in "".join(outputs)
    denied = [it for it in session.reports if it["type"] == "approval" and it["decision"] == "deny"]
    assert [it["source"] for it in denied] == ["tool_guard_deny"]
