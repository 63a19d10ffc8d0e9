"""One class per route and SDK: how its own stream helpers read a stream, and what they make of it at the end."""

import json
from dataclasses import dataclass, field

import calls

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Tells the weather of a city."}
FUNCTION = {"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}


@dataclass
class Told:
    """What the SDK has made of a stream."""

    text: str
    stop: str
    #: Names and arguments.
    calls: list = field(default_factory=list)
    refusal: str | None = None


class OpenAIChat(calls.OpenAIChat):
    tools = [FUNCTION]
    stops = {"whole": "stop", "refused": "stop", "filtered": "content_filter", "called": "tool_calls"}

    def tell(self, url, model, prompt, on_text=lambda: None, **asked):
        messages = [{"role": "user", "content": prompt}]
        with self.client(url).chat.completions.stream(model=model, messages=messages, **asked) as stream:
            for event in stream:
                if event.type == "content.delta":
                    on_text()
            choice = stream.get_final_completion().choices[0]
        made = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []]
        return Told(choice.message.content or "", choice.finish_reason, made, choice.message.refusal)


class OpenAICompletions(calls.OpenAICompletions):
    tools = None
    stops = {"whole": "stop", "refused": "stop", "filtered": "content_filter"}

    def tell(self, url, model, prompt, on_text=lambda: None, **asked):
        prompt = f"{prompt}<|im_start|>assistant\n"
        text, stop = "", None
        for chunk in self.client(url).completions.create(
            model=model, prompt=prompt, max_tokens=64, stream=True, **asked
        ):
            for choice in chunk.choices:
                text, stop = text + (choice.text or ""), choice.finish_reason or stop
                if choice.text:
                    on_text()
        return Told(text, stop)


class OpenAIResponses(calls.OpenAIResponses):
    tools = [{"type": "function", **WEATHER, "parameters": PARAMETERS, "strict": False}]
    stops = {"whole": "completed", "refused": "completed", "filtered": "incomplete", "called": "completed"}

    def tell(self, url, model, prompt, on_text=lambda: None, **asked):
        with self.client(url).responses.stream(model=model, input=prompt, **asked) as stream:
            response = None
            for event in stream:
                if event.type == "response.output_text.delta":
                    on_text()
                if event.type in ("response.completed", "response.incomplete"):
                    response = event.response
            if response.status == "completed":
                response = stream.get_final_response()
        parts = [part for item in response.output if item.type == "message" for part in item.content]
        refusals = [part.refusal for part in parts if part.type == "refusal"]
        made = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
        return Told(response.output_text, response.status, made, "".join(refusals) or None)


class AnthropicMessages(calls.AnthropicMessages):
    tools = [{**WEATHER, "input_schema": PARAMETERS}]
    stops = {"whole": "end_turn", "refused": "refusal", "filtered": "refusal", "called": "tool_use"}

    def tell(self, url, model, prompt, on_text=lambda: None, **asked):
        messages = [{"role": "user", "content": prompt}]
        with self.client(url).messages.stream(model=model, messages=messages, max_tokens=128, **asked) as stream:
            for _ in stream.text_stream:
                on_text()
            message = stream.get_final_message()
        text = "".join(block.text for block in message.content if block.type == "text")
        made = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
        return Told(text, message.stop_reason, made)


class OllamaChat(calls.OllamaChat):
    tools = [FUNCTION]
    stops = {"whole": "stop", "refused": "content_filter", "filtered": "content_filter", "called": "stop"}

    def tell(self, url, model, prompt, on_text=lambda: None, **asked):
        messages = [{"role": "user", "content": prompt}]
        told = Told("", None)
        for part in self.client(url).chat(model=model, messages=messages, stream=True, **asked):
            told.text += part.message.content or ""
            told.calls += [(call.function.name, call.function.arguments) for call in part.message.tool_calls or []]
            if part.message.content:
                on_text()
            if part.done:
                told.stop = part.done_reason
        return told


class OllamaGenerate(calls.OllamaGenerate):
    tools = None
    stops = {"whole": "stop", "refused": "content_filter", "filtered": "content_filter"}

    def tell(self, url, model, prompt, on_text=lambda: None, **asked):
        told = Told("", None)
        for part in self.client(url).generate(model=model, prompt=prompt, stream=True, **asked):
            told.text += part.response or ""
            if part.response:
                on_text()
            if part.done:
                told.stop = part.done_reason
        return told


STREAMS = [OpenAIChat(), OpenAICompletions(), OpenAIResponses(), AnthropicMessages(), OllamaChat(), OllamaGenerate()]
