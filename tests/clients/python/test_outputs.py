"""Tool calls, thinking and lists: what a post hook gets to see of them, and that SDKs still read them."""

import json

import anthropic
import calls
import ollama
import openai
import pytest
from conftest import STACK

GATEWAYS, ANSWER = STACK["gateways"], STACK["answer"]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Tells the weather of a city."}
CHAT_TOOL = {"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}
RESPONSES_TOOL = {"type": "function", **WEATHER, "parameters": PARAMETERS, "strict": False}
ANTHROPIC_TOOL = {**WEATHER, "input_schema": PARAMETERS}
PROMPT = [{"role": "user", "content": "Weather in Paris?"}]


def the_hook_saw_the_call(seen):
    [hook] = seen.webhook()
    [call] = hook["body"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}


def the_hook_saw_the_thinking(seen):
    [hook] = seen.webhook()
    assert hook["body"]["output_thinking"].strip() == "plan"
    assert hook["body"]["output_text"].strip() == ANSWER


def test_chat_completions_tool_call(seen_tool):
    client = calls.OpenAIChat().client(GATEWAYS["post-allow"])
    got = client.chat.completions.create(model=seen_tool.model, messages=PROMPT, tools=[CHAT_TOOL])
    [call] = got.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    the_hook_saw_the_call(seen_tool)


def test_responses_tool_call(seen_tool):
    client = calls.OpenAIResponses().client(GATEWAYS["post-allow"])
    got = client.responses.create(model=seen_tool.model, input="Weather in Paris?", tools=[RESPONSES_TOOL])
    [call] = [item for item in got.output if item.type == "function_call"]
    assert call.name == "get_weather"
    the_hook_saw_the_call(seen_tool)


def test_messages_tool_call(seen_tool):
    client = calls.AnthropicMessages().client(GATEWAYS["post-allow"])
    got = client.messages.create(model=seen_tool.model, messages=PROMPT, tools=[ANTHROPIC_TOOL], max_tokens=128)
    [call] = [block for block in got.content if block.type == "tool_use"]
    assert (call.name, call.input) == ("get_weather", {"city": "Paris"})
    the_hook_saw_the_call(seen_tool)


def test_the_tools_of_a_request_are_shown_to_a_pre_hook(seen_tool):
    client = calls.OpenAIChat().client(GATEWAYS["pre-allow"])
    client.chat.completions.create(model=seen_tool.model, messages=PROMPT, tools=[CHAT_TOOL])
    [hook] = seen_tool.webhook()
    assert hook["body"]["tools"][0]["function"]["name"] == "get_weather"


def test_chat_completions_thinking(seen_think):
    client = calls.OpenAIChat().client(GATEWAYS["post-allow"])
    got = client.chat.completions.create(model=seen_think.model, messages=PROMPT)
    assert got.choices[0].message.reasoning_content.strip() == "plan"
    the_hook_saw_the_thinking(seen_think)


def test_messages_thinking(seen_think):
    client = calls.AnthropicMessages().client(GATEWAYS["post-allow"])
    got = client.messages.create(model=seen_think.model, messages=PROMPT, max_tokens=64)
    assert [block.type for block in got.content] == ["thinking", "text"]
    the_hook_saw_the_thinking(seen_think)


def test_responses_thinking(seen_think):
    client = calls.OpenAIResponses().client(GATEWAYS["post-allow"])
    got = client.responses.create(model=seen_think.model, input="Weather in Paris?")
    assert [item.type for item in got.output] == ["reasoning", "message"]
    the_hook_saw_the_thinking(seen_think)


def test_lists_of_models_pass():
    for scenario in ("none", "pre-deny"):
        assert openai.OpenAI(base_url=f"{GATEWAYS[scenario]}/v1", api_key="none").models.list().data
        assert ollama.Client(host=GATEWAYS[scenario]).list().models


def test_counting_tokens_is_hooked_before_inference(seen):
    client = calls.AnthropicMessages().client(GATEWAYS["pre-deny"])
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.count_tokens(model=seen.model, messages=PROMPT)
    assert raised.value.body["hook"]["permission"] == "deny"
    assert seen.upstream() == []
