"""The servers that `run.py` has started, and what reached them."""

import json
import os
import urllib.request
import uuid

import pytest

STACK = json.loads(os.environ["CLIENTS_STACK"])


class Seen:
    """A model name of this test alone, and the requests that named it."""

    def __init__(self, kind):
        self.model = f"{kind}-{uuid.uuid4().hex[:12]}"

    def _at(self, where):
        with urllib.request.urlopen(f"{STACK['records']}/{where}/{self.model}") as response:
            return json.load(response)

    def upstream(self):
        return self._at("upstream")

    def webhook(self):
        return self._at("webhook")

    def events(self):
        return [call["body"]["event"] for call in self.webhook()]


@pytest.fixture
def seen():
    """With a model that answers in plain text."""
    return Seen("text")


@pytest.fixture
def seen_tool():
    """With a model that calls `get_weather`."""
    return Seen("tool")


@pytest.fixture
def seen_think():
    """With a model that thinks before it answers."""
    return Seen("think")


@pytest.fixture
def seen_steps():
    """With a model that does an agent's work: three tool calls, one after the other, and a last answer."""
    return Seen("steps")
