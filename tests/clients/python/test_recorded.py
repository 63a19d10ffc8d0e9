"""Streams as servers have sent them, through the SDKs' own stream helpers, times each verdict.

What an SDK makes of a stream without a gateway says what it has to make of it with one.
"""

import functools
import itertools
import urllib.request

import pytest
from conftest import STACK, Seen
from recorded import BY_HAND, FILTERED, SAID, SDKS, hear
from test_streams import STREAMS as HELPERS

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")

CUTS = ("whole", "frames", "crumbs")
STREAMS = [(stream["route"], stream["name"], stream.get("response")) for stream in STACK["recorded"]]
CALLERS = [stream for stream, told in zip(STREAMS, STACK["recorded"], strict=True) if told["calls"]]
SPEAKERS = [stream for stream, told in zip(STREAMS, STACK["recorded"], strict=True) if told["speaks"]]
SPEAK_FIRST = [stream for stream, told in zip(STREAMS, STACK["recorded"], strict=True) if told["speaks_first"]]
STOPS = {helper.route: helper.stops for helper in HELPERS}
PLAIN_STOPS = {"tool_calls": "stop", "function_call": "stop", "tool_use": "end_turn"}


def each(streams):
    return pytest.mark.parametrize("stream", streams, ids=lambda stream: f"{stream[0]}-{stream[1]}")


every_stream, every_caller, every_speaker = each(STREAMS), each(CALLERS), each(SPEAKERS)
#: As `on_block` says.
every_ending = pytest.mark.parametrize("ending", ["refused", "filtered"])


def helper_of(stream):
    return SDKS[stream[0]]


def reader_of(stream):
    """The SDK's helper; where that cannot read the stream, who adds up its chunks."""
    return BY_HAND.get(stream[:2], helper_of(stream))


def listen(stream, scenario, cut, seen=None, reader=None):
    """What the SDK hears of a stream; `scenario` None is without a gateway. With `seen` the upstream goes on as soon as
    the SDK has heard anything."""
    sdk = reader or reader_of(stream)
    client, headers = client_of(sdk, scenario)
    before = len(headers)
    if seen:
        go_on = lambda: urllib.request.urlopen(f"{STACK['records']}/go-on/{seen.model}").close()
        found = hear(sdk, client, seen.model, go_on)
    else:
        found = hear(sdk, client, Seen(f"recorded-{stream[1]}.{cut}.").model)
    assert len(headers) == before + 1, "it was asked again"
    return found


@functools.cache
def client_of(sdk, scenario):
    client = sdk.client(STACK["gateways"][scenario] if scenario else STACK["upstream"])
    return client, sdk.headers


def without_gateway(stream, reader=None):
    return heard_at(STREAMS.index(stream), reader or reader_of(stream))


@functools.cache
def heard_at(place, reader):
    return listen(STREAMS[place], None, "whole", reader=reader)


def whole(stream, reader=None):
    """What the SDK is to be told where nobody changes anything; None where it cannot read such a stream. One of
    `/v1/responses` that leaves out what the SDK wants says all of it in its last event."""
    route, _, response = stream
    heard = without_gateway(stream, reader)
    if response and response["status"] == "completed":
        return {"choices": SDKS[route].choices(response), "error": None}
    return heard.told if heard.error is None or isinstance(heard.error, SAID) else None


def to_change(stream):
    """The same, where more is asked than that nothing changes: whoever reads it can."""
    told = whole(stream)
    assert told is not None, without_gateway(stream).error
    return told


def spelt(text):
    return text.replace("e", "<é>").replace("o", "")


def texts(choice, *kinds):
    return "".join(block[1] for block in choice["blocks"] if block[0] in kinds)


def others(choice):
    return [block for block in choice["blocks"] if block[0] not in ("text", "refusal")], choice["stop"]


def without_alternatives(heard):
    """The same without what the model might have said instead of a token: no hook is shown that, so it does not pass
    where one judges text."""
    if isinstance(heard, list):
        return [without_alternatives(item) for item in heard]
    if not isinstance(heard, dict):
        return heard
    heard = {key: without_alternatives(value) for key, value in heard.items()}
    if "token" in heard and heard.get("top_logprobs"):
        heard["top_logprobs"] = [it for it in heard["top_logprobs"] if it["token"] in ("", heard["token"])]
    return heard


def is_call(block):
    return block[0] in ("call", "server call")


def called(told):
    return [block for choice in told["choices"] for block in choice["blocks"] if is_call(block)]


@every_stream
@pytest.mark.parametrize("place, scenario", list(enumerate(["none", "post-allow", "piecewise-allow"])))
def test_what_is_allowed_is_heard_as_without_a_gateway(stream, place, scenario):
    for reader in {helper_of(stream), reader_of(stream)}:
        heard = listen(stream, scenario, CUTS[(place + STREAMS.index(stream)) % len(CUTS)], reader=reader)
        told, without = whole(stream, reader), without_gateway(stream, reader)
        if told in (None, without.told):
            judged = (lambda it: it) if scenario == "none" else without_alternatives
            assert (heard.told, heard.message) == (judged(without.told), judged(without.message))
        else:
            assert heard.told == told
            assert heard.message["deltas"] == "".join(texts(choice, "text") for choice in told["choices"])


@every_speaker
def test_a_stream_that_breaks_off_is_what_it_is_without_hooks_and_an_error_with_them(stream):
    told, name = to_change(stream), stream[1]
    scenarios = (None, "none", "piecewise-allow")
    without, passed, judged = (listen(stream, where, "torn", Seen(f"recorded-{name}.torn.")) for where in scenarios)
    if told == without_gateway(stream).told:
        assert (passed.told, passed.message) == (without.told, without.message)
    assert isinstance(judged.error, SAID) and "broke off" in str(judged.error)
    if stream[0] == "/v1/responses":
        said = "".join(texts(choice, "text", "refusal") for choice in told["choices"])
        assert said.startswith(judged.message["deltas"]) or said == ""
        return
    assert any(texts(choice, "text", "refusal", "thinking") for choice in judged.told["choices"])
    for choice, unchanged in zip(judged.told["choices"], told["choices"]):
        assert texts(unchanged, "text", "refusal").startswith(texts(choice, "text", "refusal"))
        assert texts(unchanged, "thinking").startswith(texts(choice, "thinking"))


@every_stream
@pytest.mark.parametrize("verdict, status", [("deny", 400), ("ask", 403)])
def test_a_refusal_of_the_whole_is_a_plain_error(stream, verdict, status):
    is_a_plain_error(stream, listen(stream, f"post-{verdict}", CUTS[STREAMS.index(stream) % len(CUTS)]), status)


def is_a_plain_error(stream, heard, status):
    sdk = helper_of(stream)
    assert isinstance(heard.error, sdk.errors[status]) and sdk.status(heard.error) == status
    assert sdk.text(heard.error) == STACK["user_message"]
    assert not any(choice["blocks"] for choice in heard.told["choices"])


def is_let_go(said, let_go, unchanged, *kinds):
    """All that hooks let go, or nothing; but what stands behind a refused block stays, and then it is whole blocks."""
    if said in ["", *let_go]:
        return True
    blocks = itertools.accumulate(block[1] for block in unchanged["blocks"] if block[0] in kinds)
    return said in blocks and any(text.startswith(said) for text in let_go)


@every_stream
@every_ending
@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_a_refusal_in_mid_stream_ends_it_with_what_was_let_go(stream, verdict, ending):
    route, name, _ = stream
    told = to_change(stream)
    seen = Seen(f"recorded-{name}.paused.")
    scenario = {"refused": "piecewise", "filtered": "filtered"}[ending]
    heard = listen(stream, f"{scenario}-later-{verdict}", "paused", seen)
    shown = [call["body"] for call in seen.webhook()]
    if not any(body["segment"]["index"] for body in shown):
        assert heard.told == told
        return
    let_go, choices = first_segments(shown), heard.told["choices"]
    for choice, unchanged in zip(choices, told["choices"]):
        assert is_let_go(said_by_model(choice), let_go["text"], unchanged, "text", "refusal")
        assert is_let_go(texts(choice, "thinking"), let_go["thinking"], unchanged, "thinking")
        assert {block[1] for block in choice["blocks"] if block[0].endswith("call")} <= let_go["call"]
    first = next((block[0] for choice in told["choices"] for block in choice["blocks"]), "text")
    if first in ("text", "thinking"):  # The upstream went on only when this had been heard.
        assert any(texts(choice, first) for choice in choices)
    ends_in_mid_stream(stream, heard, ending)


def ends_in_mid_stream(stream, heard, ending):
    """Holds an answer that a hook has ended against the one without hooks."""
    route, choices = stream[0], heard.told["choices"]
    for choice, unchanged in zip(choices, to_change(stream)["choices"]):
        if unchanged["blocks"]:  # A response that failed does not repeat what it had said.
            assert texts(unchanged, "text", "refusal").startswith(said_by_model(choice))
        assert texts(unchanged, "thinking").startswith(texts(choice, "thinking"))
    if ending == "filtered" and reader_of(stream) is SDKS["/v1/chat/completions"]:
        assert isinstance(heard.error, FILTERED)
    else:
        assert heard.error is None
    assert STOPS[route][ending] in [flat(choice["stop"]) for choice in choices]
    is_told = any(texts(choice, "refusal").endswith(STACK["user_message"]) for choice in choices)
    assert is_told == (ending == "refused" and route in ("/v1/chat/completions", "/v1/responses"))
    if route == "/v1/responses":
        assert heard.message["deltas"] == "".join(texts(choice, "text", "refusal") for choice in choices)
        reasons = [choice["stop"][1] for choice in choices]
        assert reasons == [None if ending == "refused" else "content_filter"]


def first_segments(shown):
    """What the hook let go: of each text its first segment, and calls by name."""
    found = {"text": set(), "thinking": set(), "call": set()}
    for body in shown:
        if body["segment"]["index"] == 0:
            found["text"].add(body.get("output_text", ""))
            found["thinking"].add(body.get("output_thinking", ""))
            found["call"] |= {call["function"]["name"] for call in body.get("tool_calls", [])}
    return found


def said_by_model(choice):
    """Its text and its own refusal, without what the gateway says."""
    return texts(choice, "text", "refusal").removesuffix(STACK["user_message"])


def flat(stop):
    return stop[0] if isinstance(stop, list) else stop


@every_stream
@pytest.mark.parametrize("scenario, cut", [("post-spell", "frames"), ("piecewise-spell", "crumbs")])
def test_a_rewritten_answer_is_heard_rewritten(stream, scenario, cut):
    told = to_change(stream)
    heard = listen(stream, scenario, cut)
    assert heard.told["error"] == told["error"]
    for choice, unchanged in zip(heard.told["choices"], told["choices"], strict=True):
        assert texts(choice, "text", "refusal") == spelt(texts(unchanged, "text", "refusal"))
        assert others(choice) == others(unchanged)
    without = without_gateway(stream)
    if stream[0] == "/v1/responses" and told == without.told:
        assert heard.message["deltas"] == spelt(without.message["deltas"])


@every_caller
@pytest.mark.parametrize("cut", ["frames", "crumbs"])
def test_a_denied_tool_call_is_never_heard(stream, cut):
    told = to_change(stream)
    assert called(told)
    heard = listen(stream, "tool-deny", cut)
    gone = lambda block: is_call(block) or str(block[1]).endswith("_tool_result")
    for choice, unchanged in zip(heard.told["choices"], told["choices"], strict=True):
        assert choice["blocks"] == [block for block in unchanged["blocks"] if not gone(block)]
        stop = unchanged["stop"]
        assert choice["stop"] == (stop if isinstance(stop, list) else PLAIN_STOPS.get(stop, stop))
    assert heard.told["error"] == told["error"]


@every_caller
@every_ending
@pytest.mark.parametrize("cut", ["frames", "crumbs", "paused"])
def test_a_tool_call_that_needs_approval_ends_the_answer_and_is_never_heard(stream, cut, ending):
    assert called(to_change(stream))
    seen = Seen(f"recorded-{stream[1]}.paused.") if cut == "paused" else None
    heard = listen(stream, {"refused": "tool-ask", "filtered": "filtered-tool-ask"}[ending], cut, seen)
    blocks = [block for choice in heard.told["choices"] for block in choice["blocks"]]
    assert not any(is_call(block) or block[0] == "cut call" for block in blocks)
    if blocks:
        ends_in_mid_stream(stream, heard, ending)
    else:
        is_a_plain_error(stream, heard, 403)
    if cut == "paused" and stream in SPEAK_FIRST:
        assert blocks, "the upstream went on only when something had been heard"


@every_caller
@pytest.mark.parametrize("cut", ["frames", "crumbs"])
def test_a_rewritten_tool_call_is_heard_rewritten(stream, cut):
    told = to_change(stream)
    assert called(told)
    heard = listen(stream, "tool-modify", cut)
    if any(not isinstance(call[2], dict) for call in called(told)):
        # Neither what a server has run nor free text takes other arguments.
        refused = STOPS[stream[0]]["refused"] in [flat(choice["stop"]) for choice in heard.told["choices"]]
        assert heard.error is not None or refused
        return
    rewrite = lambda block: [*block[:2], block[2] | {"city": STACK["city"]}] if block[0] == "call" else block
    for choice, unchanged in zip(heard.told["choices"], told["choices"], strict=True):
        assert choice["blocks"] == [rewrite(block) for block in unchanged["blocks"]]
        assert choice["stop"] == unchanged["stop"]
    assert heard.told["error"] == told["error"]
