"""Streams as six kinds of server have sent them, replayed: those that the tests of the crate `inference` keep.

A model `recorded-FILE.CUT.ID` is answered with `bodies/FOLDER/stream-FILE.txt`, whose folder is the route's, in pieces
as CUT says; ID keeps the tests apart.
"""

import json
import pathlib
import re

BODIES = pathlib.Path(__file__).parents[3] / "crates" / "inference" / "tests" / "bodies"

FOLDERS = {
    "/api/chat": "api-chat",
    "/api/generate": "api-generate",
    "/v1/chat/completions": "chat-completions",
    "/v1/completions": "completions",
    "/v1/messages": "messages",
    "/v1/responses": "responses",
}

FRAME = re.compile(rb".*?(?:\r?\n\r?\n|\Z)", re.DOTALL)
LINE = re.compile(rb".*?(?:\n|\Z)", re.DOTALL)

#: Text or thinking that is not empty, in a delta of any route.
SAYS = re.compile(rb'"(?:content|text|thinking|reasoning|reasoning_content|refusal|response)":\s*"[^"]')
SAYS_BY_TYPE = {
    "/v1/messages": re.compile(rb'"(?:text|thinking)_delta"'),
    "/v1/responses": re.compile(rb'(?:text|refusal)\.delta"'),
}

CALLS = re.compile(rb'"type":\s*"\w+_(?:call|tool_use)"|"type":\s*"tool_use"|"(?:tool_calls|function_call)":\s*[\[{]')

#: Pieces that end in the middle of whatever there is: characters, escapes, line ends.
CRUMBS = (1, 2, 3, 5, 8, 13, 1, 21)


def streams():
    """Route and name of each stream, whether deltas of text or thinking and whether calls come in it, and which of the
    two first; of `/v1/responses` the response that stands in its last event, if one does."""
    found = []
    for route, folder in FOLDERS.items():
        for file in sorted((BODIES / folder).glob("stream-*.txt")):
            body = file.read_text()
            stream = {"route": route, "name": file.stem.removeprefix("stream-")}
            says, calls = SAYS_BY_TYPE.get(route, SAYS).search(body.encode()), CALLS.search(body.encode())
            stream |= {"speaks": bool(says), "calls": bool(calls)}
            stream["speaks_first"] = bool(says) and not (calls and calls.start() < says.start())
            if route == "/v1/responses":
                stream["response"] = response(body)
            found.append(stream)
    return found


def response(body):
    """What the last event of `/v1/responses` says that is told by an SDK; None where it is an error."""
    events = [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith("data: ")]
    said = events[-1].get("response")
    if said is None:
        return None
    output, deltas = said["output"], [event["delta"] for event in events if event["type"].endswith("output_text.delta")]
    if deltas and output and all(item["type"] != "message" for item in output):
        # Ollama leaves its text out of it where a call follows.
        output = [{"type": "message", "content": [{"type": "output_text", "text": "".join(deltas)}]}, *output]
    return {"status": said["status"], "output": output, "incomplete_details": said.get("incomplete_details")}


def reply(route, model):
    """Content type and pieces of the stream that a model's name asks for, and whether to wait behind the first one."""
    name, cut, _ = model.removeprefix("recorded-").split(".")
    body = (BODIES / FOLDERS[route] / f"stream-{name}.txt").read_bytes()
    native = route.startswith("/api/")
    content_type = "application/x-ndjson" if native else "text/event-stream; charset=utf-8"
    frames = [frame for frame in (LINE if native else FRAME).findall(body) if frame]
    return content_type, list(CUTS[cut](frames, SAYS_BY_TYPE.get(route, SAYS))), cut in ("paused", "torn")


def crumbs(frames, _says):
    body, at, count = b"".join(frames), 0, 0
    while at < len(body):
        size = CRUMBS[count % len(CRUMBS)]
        yield body[at : at + size]
        at, count = at + size, count + 1


def paused(frames, says):
    """Behind the first frame that says something."""
    at = next((place for place, frame in enumerate(frames, 1) if says.search(frame)), len(frames))
    return [piece for piece in (b"".join(frames[:at]), b"".join(frames[at:])) if piece]


def torn(frames, says):
    """As `paused`, but the last piece breaks off in its middle."""
    *begun, rest = paused(frames, says)
    return [*begun, rest[: len(rest) * 2 // 3]]


CUTS = {
    "whole": lambda frames, _: [b"".join(frames)],
    "frames": lambda frames, _: frames,
    "crumbs": crumbs,
    "paused": paused,
    "torn": torn,
}
