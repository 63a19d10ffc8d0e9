"""One class per route and SDK: how that SDK asks, and what its own error class leaves readable of a refusal."""

from dataclasses import dataclass, field

import anthropic
import ollama
import openai


@dataclass
class Answer:
    """What a user of the SDK gets to see."""

    text: str
    headers: dict = field(default_factory=dict)


class Headers(list):
    """Response headers in order of arrival, through the hooks of the SDK's own HTTP client."""

    def hooks(self):
        return {"response": [lambda response: self.append(dict(response.headers))]}


class OpenAI:
    """What the three routes of the `openai` package share."""

    errors = {
        400: openai.BadRequestError,
        403: openai.PermissionDeniedError,
        502: openai.InternalServerError,
        503: openai.InternalServerError,
    }

    def client(self, url):
        self.headers = Headers()
        http_client = openai.DefaultHttpxClient(event_hooks=self.headers.hooks())
        return openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=http_client)

    def status(self, error):
        return error.status_code

    def hook(self, error):
        return error.body["hook"]

    def text(self, error):
        return error.body["message"]

    def kind(self, error):
        return error.type, error.code, error.param


class OpenAIChat(OpenAI):
    route = "/v1/chat/completions"

    def ask(self, url, model, prompt, stream=False):
        messages = [{"role": "user", "content": prompt}]
        got = self.client(url).chat.completions.create(model=model, messages=messages, stream=stream)
        if not stream:
            return got.choices[0].message.content
        return "".join(chunk.choices[0].delta.content or "" for chunk in got if chunk.choices)


class OpenAICompletions(OpenAI):
    route = "/v1/completions"

    def ask(self, url, model, prompt, stream=False):
        # The scripted models answer where an assistant's turn begins, which a bare prompt has to spell.
        prompt = f"{prompt}<|im_start|>assistant\n"
        got = self.client(url).completions.create(model=model, prompt=prompt, max_tokens=64, stream=stream)
        if not stream:
            return got.choices[0].text
        return "".join(chunk.choices[0].text or "" for chunk in got if chunk.choices)


class OpenAIResponses(OpenAI):
    route = "/v1/responses"

    def ask(self, url, model, prompt, stream=False):
        got = self.client(url).responses.create(model=model, input=prompt, stream=stream)
        if not stream:
            return got.output_text
        return "".join(event.delta for event in got if event.type == "response.output_text.delta")


class AnthropicMessages:
    route = "/v1/messages"
    errors = {
        400: anthropic.BadRequestError,
        403: anthropic.PermissionDeniedError,
        502: anthropic.InternalServerError,
        503: anthropic.ServiceUnavailableError,
    }

    def client(self, url):
        self.headers = Headers()
        http_client = anthropic.DefaultHttpxClient(event_hooks=self.headers.hooks())
        return anthropic.Anthropic(base_url=url, api_key="none", http_client=http_client)

    def ask(self, url, model, prompt, stream=False):
        messages = [{"role": "user", "content": prompt}]
        if not stream:
            got = self.client(url).messages.create(model=model, messages=messages, max_tokens=64)
            return "".join(block.text for block in got.content if block.type == "text")
        with self.client(url).messages.stream(model=model, messages=messages, max_tokens=64) as got:
            return "".join(got.text_stream)

    def status(self, error):
        return error.status_code

    def hook(self, error):
        assert error.body["type"] == "error"
        assert error.body["request_id"] == error.body["hook"]["request_id"]
        return error.body["hook"]

    def text(self, error):
        return error.body["error"]["message"]

    def kind(self, error):
        return error.body["error"]["type"]


class Ollama:
    """What the two native routes share: the SDK keeps the status and the text of an error."""

    errors = dict.fromkeys((400, 403, 502, 503), ollama.ResponseError)

    def client(self, url):
        self.headers = Headers()
        return ollama.Client(host=url, event_hooks=self.headers.hooks())

    def status(self, error):
        return error.status_code

    def hook(self, error):
        return None

    def text(self, error):
        return error.error

    def kind(self, error):
        return None


class OllamaChat(Ollama):
    route = "/api/chat"

    def ask(self, url, model, prompt, stream=False):
        messages = [{"role": "user", "content": prompt}]
        got = self.client(url).chat(model=model, messages=messages, stream=stream)
        return got.message.content if not stream else "".join(part.message.content for part in got)


class OllamaGenerate(Ollama):
    route = "/api/generate"

    def ask(self, url, model, prompt, stream=False):
        got = self.client(url).generate(model=model, prompt=prompt, stream=stream)
        return got.response if not stream else "".join(part.response for part in got)


CALLS = [OpenAIChat(), OpenAICompletions(), OpenAIResponses(), AnthropicMessages(), OllamaChat(), OllamaGenerate()]
