"""Each route's own stream helpers, times each verdict of a hook after inference and of a hook on tool calls."""

import urllib.request

import pytest
from conftest import STACK, Seen
from streams import STREAMS
from test_verdicts import PROMPT, refused

GATEWAYS, ANSWER, MASK, NUMBER = STACK["gateways"], STACK["answer"], STACK["mask"], STACK["answer_secret"]
BEFORE = STACK["before_pause"]

every_stream = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.route)
every_caller = pytest.mark.parametrize(
    "stream", [stream for stream in STREAMS if stream.tools], ids=lambda stream: stream.route
)


@pytest.fixture
def seen_paused():
    """With a model whose answer stops before its number until somebody has read what came before."""
    return Seen("paused")


def going_on(seen):
    """Lets the upstream go on as soon as the client has got any text."""
    return lambda: urllib.request.urlopen(f"{STACK['records']}/go-on/{seen.model}").close()


@every_stream
@pytest.mark.parametrize("scenario", ["none", "pre-allow", "post-allow", "tool-deny", "fail-open"])
def test_what_is_allowed_is_told_whole(stream, scenario, seen):
    told = stream.tell(GATEWAYS[scenario], seen.model, PROMPT)
    assert (told.text.strip(), told.stop, told.refusal) == (ANSWER, stream.stops["whole"], None)


@every_stream
@pytest.mark.parametrize("verdict", ["deny", "ask", "unavailable"])
def test_a_refusal_before_any_text_is_a_plain_error(stream, verdict, seen):
    refused(stream, f"post-{verdict}", seen, stream=True)
    assert seen.webhook()[0]["body"]["output_text"].strip() == ANSWER
    assert len(seen.upstream()) == 1


@every_stream
@pytest.mark.parametrize("scenario", ["number-blocked", "number-deny", "number-ask"])
def test_a_refusal_in_mid_stream_ends_it_with_what_was_let_go(stream, scenario, seen_paused):
    told = stream.tell(GATEWAYS[scenario], seen_paused.model, PROMPT, going_on(seen_paused))
    assert told.text and BEFORE.startswith(told.text)
    assert told.stop == stream.stops["refused"]
    assert len(stream.headers) == 1 and len(seen_paused.upstream()) == 1
    if scenario == "number-blocked":
        assert told.text.strip() == BEFORE.strip()
    if stream.route in ("/v1/chat/completions", "/v1/responses"):
        assert told.refusal


@every_stream
def test_a_filter_ending_is_told_as_one(stream, seen_paused):
    if stream.route == "/v1/chat/completions":
        with pytest.raises(Exception, match="content filter"):
            stream.tell(GATEWAYS["number-filtered"], seen_paused.model, PROMPT, going_on(seen_paused))
        return
    told = stream.tell(GATEWAYS["number-filtered"], seen_paused.model, PROMPT, going_on(seen_paused))
    assert (told.text.strip(), told.stop) == (BEFORE.strip(), stream.stops["filtered"])


@every_stream
@pytest.mark.parametrize("scenario", ["post-modify", "number-modify", "number-redacted"])
def test_a_rewritten_answer_is_told_rewritten(stream, scenario, seen):
    told = stream.tell(GATEWAYS[scenario], seen.model, PROMPT)
    mask = "<SSN>" if scenario == "number-redacted" else MASK
    assert (told.text.strip(), told.stop) == (ANSWER.replace(NUMBER, mask), stream.stops["whole"])


@every_caller
def test_a_tool_call_without_hooks_is_told(stream, seen_tool):
    told = stream.tell(GATEWAYS["none"], seen_tool.model, "Weather in Paris?", tools=stream.tools)
    assert told.calls == [("get_weather", {"city": "Paris"})]
    assert told.stop == stream.stops["called"]


@every_caller
def test_a_denied_tool_call_is_never_told(stream, seen_tool):
    told = stream.tell(GATEWAYS["tool-deny"], seen_tool.model, "Weather in Paris?", tools=stream.tools)
    assert (told.calls, told.text.strip(), told.stop) == ([], "", stream.stops["whole"])


@every_caller
def test_a_tool_call_that_needs_approval_is_refused(stream, seen_tool):
    with pytest.raises(stream.errors[403]) as raised:
        stream.tell(GATEWAYS["tool-ask"], seen_tool.model, "Weather in Paris?", tools=stream.tools)
    assert stream.text(raised.value) == STACK["user_message"]
    assert len(stream.headers) == 1


@every_caller
def test_a_rewritten_tool_call_is_told_rewritten(stream, seen_tool):
    told = stream.tell(GATEWAYS["tool-modify"], seen_tool.model, "Weather in Paris?", tools=stream.tools)
    assert told.calls == [("get_weather", {"city": STACK["city"]})]
    assert told.stop == stream.stops["called"]
