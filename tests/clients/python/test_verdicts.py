"""Each route that an SDK speaks, times each verdict: what its user sees, and what the upstream and the webhook saw."""

import json

import pytest
from calls import CALLS
from conftest import STACK

GATEWAYS, ANSWER, MASK = STACK["gateways"], STACK["answer"], STACK["mask"]
SECRET = STACK["prompt_secret"]
PROMPT = f"The word is {SECRET}."

#: Verdict: status, `permission`, OpenAI's type and code, Anthropic's type.
REFUSALS = {
    "deny": (400, "deny", "hook_denied", "hook_deny", "invalid_request_error"),
    "ask": (403, "ask", "hook_approval_required", "hook_ask", "permission_error"),
    "unavailable": (503, "unavailable", "hook_failed", "hook_unavailable", "overloaded_error"),
    "unsupported": (502, "modify", "hook_failed", "hook_modify_unsupported", "api_error"),
}

#: Routes whose request holds one prompt, not a conversation.
PROMPT_CALLS = [call for call in CALLS if call.route in ("/v1/completions", "/api/generate")]

every_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.route)
streaming_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def refused(call, scenario, seen, stream=False):
    """Asks once, and expects the SDK's own error for the verdict that the scenario is named after."""
    phase, verdict = scenario.split("-")
    status, permission, *kind = REFUSALS[verdict]
    with pytest.raises(call.errors[status]) as raised:
        call.ask(GATEWAYS[scenario], seen.model, PROMPT, stream)
    error = raised.value
    assert call.status(error) == status
    [headers] = call.headers  # A retry would have a second response.
    assert headers["x-should-retry"] == "false"
    [shown] = seen.webhook()
    assert shown["body"]["event"] == f"{phase}_inference"
    assert shown["body"]["request_id"] == headers["x-ollama-request-id"]
    if verdict in ("deny", "ask"):
        assert call.text(error) == STACK["user_message"]
    else:
        assert call.text(error)
    hook = call.hook(error)
    if hook is None:
        return
    assert hook["permission"] == permission
    assert hook["phase"] == f"{phase}_inference"
    assert hook["request_id"] == headers["x-ollama-request-id"]
    if verdict in ("deny", "ask"):
        assert hook["user_message"] == STACK["user_message"]
        assert hook["agent_message"] == STACK["agent_message"]
    if verdict == "ask":
        assert hook["fingerprint"]
    openai_type, openai_code, anthropic_type = kind
    assert call.kind(error) in ((openai_type, openai_code, None), anthropic_type)


@every_call
@streaming_or_not
@pytest.mark.parametrize("scenario", ["none", "pre-allow", "post-allow", "fail-open"])
def test_what_is_allowed_passes(call, stream, scenario, seen):
    assert call.ask(GATEWAYS[scenario], seen.model, PROMPT, stream).strip() == ANSWER
    assert len(seen.upstream()) == 1
    assert SECRET in json.dumps(seen.upstream()[0]["body"])
    shown = {"pre-allow": ["pre_inference"], "post-allow": ["post_inference"]}
    assert seen.events() == shown.get(scenario, [] if scenario == "none" else ["pre_inference", "post_inference"])
    if seen.webhook():
        assert call.headers[-1]["x-ollama-request-id"] == seen.webhook()[0]["body"]["request_id"]


@every_call
@streaming_or_not
@pytest.mark.parametrize("verdict", ["deny", "ask", "unavailable"])
def test_what_is_refused_before_inference_never_reaches_the_upstream_and_is_not_retried(call, stream, verdict, seen):
    refused(call, f"pre-{verdict}", seen, stream)
    assert seen.upstream() == []


@every_call
@pytest.mark.parametrize("verdict", ["deny", "ask", "unavailable"])
def test_what_is_refused_after_inference_is_not_retried(call, verdict, seen):
    refused(call, f"post-{verdict}", seen)
    assert seen.webhook()[0]["body"]["output_text"].strip() == ANSWER
    assert len(seen.upstream()) == 1


@every_call
@streaming_or_not
def test_the_upstream_sees_what_a_pre_hook_wrote(call, stream, seen):
    assert call.ask(GATEWAYS["pre-modify"], seen.model, PROMPT, stream).strip() == ANSWER
    [request] = seen.upstream()
    assert request["path"] == call.route
    assert f"The word is {MASK}." in json.dumps(request["body"])
    assert SECRET not in json.dumps(request["body"])


@every_call
def test_the_client_sees_what_a_post_hook_wrote(call, seen):
    answer = call.ask(GATEWAYS["post-modify"], seen.model, PROMPT)
    assert answer.strip() == ANSWER.replace(STACK["answer_secret"], MASK)
    assert len(seen.upstream()) == 1


@pytest.mark.parametrize("call", PROMPT_CALLS, ids=lambda call: call.route)
@streaming_or_not
def test_a_prompt_cannot_hold_a_conversation(call, stream, seen):
    refused(call, "pre-unsupported", seen, stream)
    assert seen.upstream() == []


@every_call
def test_hooks_on_both_sides_share_a_request_id_and_carry_the_configured_headers(call, seen):
    answer = call.ask(GATEWAYS["both"], seen.model, PROMPT)
    assert answer.strip() == ANSWER.replace(STACK["answer_secret"], MASK)
    assert seen.events() == ["pre_inference", "post_inference"]
    for hook in seen.webhook():
        assert hook["body"]["schema_version"] == 1
        assert hook["body"]["route"] == call.route
        assert hook["body"]["request_id"] == call.headers[-1]["x-ollama-request-id"]
        assert hook["headers"]["x-ollama-request-id"] == hook["body"]["request_id"]
        assert hook["headers"]["x-ollama-hook-event"] == hook["body"]["event"]
        assert hook["headers"]["user-agent"] == "ollama-hooks/1"
        assert hook["headers"]["content-type"] == "application/json"
        assert hook["headers"]["accept"] == "application/json"
        assert (hook["headers"]["x-team"], hook["headers"]["x-site"]) == ("red", "north")


@every_call
def test_webhooks_of_a_configuration_file_speak_the_same_contract(call, seen):
    with pytest.raises(call.errors[403]) as raised:
        call.ask(GATEWAYS["yaml-webhooks"], seen.model, PROMPT)
    assert call.text(raised.value) == STACK["user_message"]
    assert seen.events() == ["pre_inference", "post_inference"]
    [request] = seen.upstream()
    assert f"The word is {MASK}." in json.dumps(request["body"])


@every_call
@streaming_or_not
def test_builtins_redact_a_prompt_and_block_an_answer(call, stream, seen):
    token = "ghp_" + "wJ7Qd2Kx9Vb4Nc6Rt8Yp1Zs3Lf5Hg0Mk2Uo4"
    if stream:
        # In mid-stream, or as an error where nothing had left yet: the number never comes.
        try:
            answer = call.ask(GATEWAYS["yaml-builtins"], seen.model, f"My token is {token}.", stream)
        except call.errors[400]:
            answer = ""
        assert ANSWER.startswith(answer.strip()) and STACK["answer_secret"][:5] not in answer
    else:
        with pytest.raises(call.errors[400]):
            call.ask(GATEWAYS["yaml-builtins"], seen.model, f"My token is {token}.")
    [request] = seen.upstream()
    assert "My token is " in json.dumps(request["body"])
    assert token not in json.dumps(request["body"])
