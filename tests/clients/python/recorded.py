"""How each SDK's own stream helper reads a recorded stream, and what its message holds then, in one form for all.

The form: `{"choices": [{"blocks": [[kind, …], …], "stop": …}, …], "error": [class, text] or None}`, where a block is
`["thinking", text]`, `["text", text]`, `["refusal", text]`, `["call", name, arguments]`,
`["server call", name, …]`, `["cut call", name]` or `["other", type]`. Beside it the message as the SDK has it.
"""

import json
from dataclasses import dataclass

import anthropic
import calls
import ollama
import openai

MESSAGES = [{"role": "user", "content": "Go on."}]


@dataclass
class Heard:
    """What a client has when a stream is over."""

    told: dict
    #: As the SDK has gathered it; None where it has none.
    message: object
    error: Exception | None = None


def arguments(text):
    """Those of a call; of one that broke off its text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def block(kind, text):
    return [[kind, text]] if text else []


def hear(sdk, client, model, on_text=lambda: None):
    """Reads a stream to its end, or to the error that its SDK raises, with what had been gathered until then."""
    reader, error = sdk.reader(client, model), None
    try:
        for said in reader:
            if said:
                on_text()
    except Exception as raised:  # Of whatever class: the stream without a gateway has to raise the same.
        error = raised
    message = sdk.message(reader)
    choices = sdk.choices(message) if message else []
    told_error = error and [type(error).__name__, str(error)]
    return Heard({"choices": choices, "error": told_error}, message, error)


class Reader:
    """Runs through a stream's events by `read`, which says of each whether it brought text or thinking."""

    def __init__(self, read):
        self.gathered = None
        self._read = read(self)

    def __iter__(self):
        return self._read


class Chat(calls.OpenAIChat):
    def reader(self, client, model):
        def read(reader):
            with client.chat.completions.stream(model=model, messages=MESSAGES) as stream:
                for event in stream:
                    reader.gathered = stream.current_completion_snapshot
                    deltas = [choice.delta for choice in event.chunk.choices] if event.type == "chunk" else []
                    yield any(
                        delta.content or delta.refusal or thinking_of(delta.model_extra) for delta in deltas
                    )
                reader.gathered = stream.get_final_completion()

        return Reader(read)

    def message(self, reader):
        return reader.gathered and reader.gathered.model_dump(mode="json", warnings=False)

    def choices(self, message):
        return [self.choice(choice["message"], choice["finish_reason"]) for choice in message["choices"]]

    def choice(self, message, stop):
        made = [call["function"] for call in message.get("tool_calls") or []] + [message.get("function_call")]
        return {
            "blocks": [
                *block("thinking", thinking_of(message)),
                *block("text", message.get("content")),
                *block("refusal", message.get("refusal")),
                *(["call", call["name"], arguments(call["arguments"])] for call in made if call),
            ],
            "stop": stop,
        }


def thinking_of(fields):
    return (fields or {}).get("reasoning_content") or (fields or {}).get("reasoning") or ""


class ChatByHand(Chat):
    """For streams that the helper cannot read: its user adds up the chunks."""

    def reader(self, client, model):
        def read(reader):
            reader.gathered = {}
            for chunk in client.chat.completions.create(model=model, messages=MESSAGES, stream=True):
                pieces = [(choice, *piece) for choice in chunk.choices for piece in pieces_of(choice.delta)]
                for choice in chunk.choices:
                    gathered = reader.gathered.setdefault(choice.index, dict(thinking="", text="", refusal="", stop=None))
                    gathered["stop"] = choice.finish_reason or gathered["stop"]
                for choice, kind, text in pieces:
                    reader.gathered[choice.index][kind] += text
                yield any(text for _, _, text in pieces)

        return Reader(read)

    def message(self, reader):
        return reader.gathered

    def choices(self, message):
        kinds = ("thinking", "text", "refusal")
        return [
            {"blocks": sum((block(kind, choice[kind]) for kind in kinds), []), "stop": choice["stop"]}
            for _, choice in sorted(message.items())
        ]


def pieces_of(delta):
    """Kind and text of each piece that a delta brings; the text may come in parts."""
    parts = delta.content if isinstance(delta.content, list) else [{"type": "text", "text": delta.content or ""}]
    for part in parts:
        for each in part["thinking"] if part["type"] == "thinking" else [part]:
            yield part["type"], each["text"]
    yield "thinking", thinking_of(delta.model_extra)
    yield "refusal", delta.refusal or ""


class Completions(calls.OpenAICompletions):
    """The SDK has no helper for these streams: its user adds up the chunks."""

    def reader(self, client, model):
        def read(reader):
            reader.gathered = {}
            for chunk in client.completions.create(model=model, prompt="Go on.", stream=True):
                for choice in chunk.choices:
                    gathered = reader.gathered.setdefault(choice.index, {"text": "", "stop": None})
                    gathered["text"] += choice.text or ""
                    gathered["stop"] = choice.finish_reason or gathered["stop"]
                yield any(choice.text for choice in chunk.choices)

        return Reader(read)

    def message(self, reader):
        return reader.gathered

    def choices(self, message):
        return [{"blocks": block("text", choice["text"]), "stop": choice["stop"]} for choice in message.values()]


class Responses(calls.OpenAIResponses):
    ends = ("response.completed", "response.incomplete", "response.failed")
    texts = ("response.output_text.delta", "response.refusal.delta")

    def reader(self, client, model):
        def read(reader):
            reader.deltas = ""
            with client.responses.stream(model=model, input="Go on.") as stream:
                for event in stream:
                    if event.type in self.texts:
                        reader.deltas += event.delta
                    if event.type in self.ends:
                        reader.gathered = event.response
                    if event.type == "error":
                        reader.gathered = event
                    yield event.type in self.texts or event.type.endswith("text.delta")
                if event.type == "response.completed":
                    reader.gathered = stream.get_final_response()

        return Reader(read)

    def message(self, reader):
        message = reader.gathered.model_dump(mode="json", warnings=False) if reader.gathered else {}
        return message | {"deltas": getattr(reader, "deltas", "")}

    def choices(self, message):
        if "output" not in message:
            return []
        reason = (message.get("incomplete_details") or {}).get("reason")
        found = [self.blocks(item) for item in message["output"]]
        return [{"blocks": sum(found, []), "stop": [message["status"], reason]}]

    def blocks(self, item):
        match item["type"]:
            case "message":
                kinds = {"output_text": ("text", "text"), "refusal": ("refusal", "refusal")}
                parts = [(kinds[part["type"]], part) for part in item["content"]]
                return [each for (kind, field), part in parts for each in block(kind, part[field])]
            case "reasoning":
                parts = [*(item.get("summary") or []), *(item.get("content") or [])]
                return block("thinking", "".join(part["text"] for part in parts))
            case "function_call" | "custom_tool_call" if item.get("status") == "incomplete":
                return [["cut call", item["name"]]]
            case "function_call":
                return [["call", item["name"], arguments(item["arguments"])]]
            case "custom_tool_call":
                return [["call", item["name"], item["input"]]]
            case kind if kind.endswith("_call"):
                return [["server call", kind.removesuffix("_call"), None]]
            case other:
                return [["other", other]]


class Messages(calls.AnthropicMessages):
    texts = ("text_delta", "thinking_delta")

    def reader(self, client, model):
        def read(reader):
            with client.messages.stream(model=model, messages=MESSAGES, max_tokens=64) as stream:
                for event in stream:
                    reader.gathered = stream.current_message_snapshot
                    yield event.type == "content_block_delta" and event.delta.type in self.texts
                reader.gathered = stream.get_final_message()

        return Reader(read)

    def message(self, reader):
        return reader.gathered and reader.gathered.model_dump(mode="json", warnings=False)

    def choices(self, message):
        found = [self.blocks(each) for each in message["content"]]
        return [{"blocks": sum(found, []), "stop": message["stop_reason"]}]

    def blocks(self, each):
        match each["type"]:
            case "text":
                return block("text", each["text"])
            case "thinking":
                return block("thinking", each["thinking"])
            case "tool_use":
                return [["call", each["name"], each["input"]]]
            case "server_tool_use" | "mcp_tool_use":
                return [["server call", each["name"], {}]]
            case other:
                return [["other", other]]


class Native:
    """The SDK has no helper for these streams: its user adds up the parts."""

    def reader(self, client, model):
        def read(reader):
            reader.gathered = {"thinking": "", "text": "", "calls": [], "stop": None}
            for part in self.parts(client, model):
                text, thinking, made = self.said(part)
                reader.gathered["text"] += text or ""
                reader.gathered["thinking"] += thinking or ""
                reader.gathered["calls"] += [[call.function.name, call.function.arguments] for call in made or []]
                if part.done:
                    reader.gathered["stop"] = part.done_reason
                yield bool(text or thinking)

        return Reader(read)

    def message(self, reader):
        return reader.gathered

    def choices(self, message):
        texts = [*block("thinking", message["thinking"]), *block("text", message["text"])]
        made = [["call", name, dict(arguments)] for name, arguments in message["calls"]]
        return [{"blocks": texts + made, "stop": message["stop"]}]


class NativeChat(Native, calls.OllamaChat):
    def parts(self, client, model):
        return client.chat(model=model, messages=MESSAGES, stream=True)

    def said(self, part):
        return part.message.content, part.message.thinking, part.message.tool_calls


class NativeGenerate(Native, calls.OllamaGenerate):
    def parts(self, client, model):
        return client.generate(model=model, prompt="Go on.", stream=True)

    def said(self, part):
        return part.response, part.thinking, None


SDKS = {sdk.route: sdk for sdk in (Chat(), Completions(), Responses(), Messages(), NativeChat(), NativeGenerate())}

#: Streams that the helper of the `openai` package cannot read; its chunks can be.
BY_HAND = {
    # What comes in parts it leaves out without a word, but for the last text.
    ("/v1/chat/completions", "mistral-parts"): ChatByHand(),
    # A second choice that comes before the first is an IndexError.
    ("/v1/chat/completions", "llamacpp-two-choices"): ChatByHand(),
}

#: What the helper raises for an answer that was filtered, and that its user can read all the same.
FILTERED = openai.ContentFilterFinishReasonError

#: What the SDKs raise for what a server says, and for nothing else.
SAID = (openai.APIError, anthropic.APIError, ollama.ResponseError, openai.LengthFinishReasonError)
