"""The upstream of the tests: records each request, then hands it to the server that can answer it.

`/api/*`, which llama.cpp does not speak, gets replies in the form that Ollama's API documents. Everything else goes
to a real llama.cpp server, chosen by the first word of the model's name: `tool-…` calls a tool, `think-…` thinks
first, any other answers with plain text. `recorded-…` gets a recorded stream, on any route. A stream for a `paused-…`
model stops where the answer's number begins, and goes on when the test says so.
"""

import http.client
import json
import pathlib
import threading
import urllib.parse
from collections import defaultdict

from . import recorded, server
from .models import ANSWER

#: What a paused stream sends before it waits.
BEFORE_PAUSE = ANSWER[: ANSWER.index("123")]

#: How long a paused stream waits at most, in seconds.
PATIENCE = 30

REPLIES = pathlib.Path(__file__).with_name("ollama_replies")


def ollama_reply(path, body):
    """Status, content type and chunks of the reply to a native route, or None where there is none."""
    name = path.removeprefix("/api/")
    asked = json.loads(body) if body else {}
    if name in ("chat", "generate") and asked.get("stream", True):
        kind = "-tool" if asked.get("tools") else ""
        lines = (REPLIES / f"{name}{kind}.ndjson").read_bytes().splitlines(keepends=True)
        return 200, "application/x-ndjson", [named(line, asked) for line in lines]
    file = REPLIES / f"{name}.json"
    if not file.is_file():
        return None
    return 200, "application/json; charset=utf-8", [named(file.read_bytes(), asked)]


def named(text, asked):
    """A reply carries the model that was asked for."""
    return text.replace(b"MODEL", asked.get("model", "").encode())


class Pauses:
    """Streams that wait, by the model they answer for."""

    def __init__(self):
        self._go_on = defaultdict(threading.Event)

    def go_on(self, model):
        self._go_on[model].set()

    def between(self, model, pieces):
        """The first piece, and the others once the test says so."""
        yield pieces[0]
        for piece in pieces[1:]:
            self._go_on[model].wait(PATIENCE)
            yield piece

    def within(self, model, chunks):
        """The frames of a stream; those from the answer's number on once the test says so."""
        frames = b"".join(chunks)
        separator = b"\n\n" if b"\n\n" in frames else b"\n"
        said = ""
        waits = model.startswith("paused-")
        for frame in frames.split(separator):
            if frame:
                said += text_of(frame)
                if waits and len(said) > len(BEFORE_PAUSE):
                    self._go_on[model].wait(PATIENCE)
                    waits = False
                yield frame + separator


def text_of(frame):
    """The text that a frame of any route brings."""
    data = frame[frame.find(b"{") :] if b"{" in frame else b"{}"
    event = json.loads(data)
    places = (
        lambda: event["choices"][0]["delta"]["content"],
        lambda: event["choices"][0]["text"],
        lambda: event["delta"]["text"],
        lambda: event["delta"] if event["type"] == "response.output_text.delta" else None,
        lambda: event["message"]["content"],
        lambda: event["response"],
    )
    for place in places:
        try:
            found = place()
        except (KeyError, IndexError, TypeError):
            continue
        if isinstance(found, str):
            return found
    return ""


def start(record, llama_servers, pauses):
    """`llama_servers` maps the first word of a model's name to an address; `text` is the one for all others."""

    class Upstream(server.Handler):
        def do_GET(self):
            self.forward("GET", b"")

        def do_POST(self):
            body = self.body()
            record.add(self, body)
            self.forward("POST", body)

        def forward(self, method, body):
            asked = json.loads(body) if body else {}
            if asked.get("model", "").startswith("recorded-"):
                self.recorded(asked["model"])
            elif self.path.startswith("/api/"):
                self.replay(body)
            else:
                self.proxy(method, body)

        def recorded(self, model):
            content_type, pieces, waits = recorded.reply(self.path, model)
            self.answer_stream(200, content_type, pauses.between(model, pieces) if waits else pieces)

        def replay(self, body):
            found = ollama_reply(urllib.parse.urlsplit(self.path).path, body)
            if found is None:
                self.answer(404, {"error": "no reply for this path"})
            elif len(found[2]) == 1:
                self.answer(found[0], found[2][0], found[1])
            else:
                status, content_type, chunks = found
                self.answer_stream(status, content_type, pauses.within(json.loads(body)["model"], chunks))

        def proxy(self, method, body):
            model = (json.loads(body) if body else {}).get("model", "")
            address = llama_servers.get(model.split("-")[0], llama_servers["text"])
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=60)
            connection.request(method, self.path, body or None, {"content-type": "application/json"})
            response = connection.getresponse()
            content_type = response.getheader("content-type", "application/json")
            if response.getheader("content-length"):
                self.answer(response.status, response.read(), content_type)
            else:
                chunks = iter(lambda: response.read1(65536), b"")
                if model.startswith("paused-"):
                    chunks = pauses.within(model, chunks)
                self.answer_stream(response.status, content_type, chunks)
            connection.close()

    return server.start(Upstream)
