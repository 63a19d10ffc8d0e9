"use strict";
// One entry per route and SDK: how that SDK asks, and what its own error class leaves readable of a refusal.

const Anthropic = require("@anthropic-ai/sdk");
const { Ollama } = require("ollama");
const OpenAI = require("openai");

/** A `fetch` that keeps the headers of each response in `headers`. */
function keeping(headers) {
  return async (...request) => {
    const response = await fetch(...request);
    headers.push(response.headers);
    return response;
  };
}

async function join(stream, text) {
  let whole = "";
  for await (const part of stream) whole += text(part) ?? "";
  return whole;
}

const openai = {
  client: (url, headers) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", fetch: keeping(headers) }),
  errors: {
    400: OpenAI.BadRequestError,
    403: OpenAI.PermissionDeniedError,
    502: OpenAI.InternalServerError,
    503: OpenAI.InternalServerError,
  },
  status: (error) => error.status,
  text: (error) => error.error.message,
  hook: (error) => error.error.hook,
  kind: (error) => [error.type, error.code, error.param],
};

const anthropic = {
  client: (url, headers) => new Anthropic({ baseURL: url, apiKey: "none", fetch: keeping(headers) }),
  errors: {
    400: Anthropic.BadRequestError,
    403: Anthropic.PermissionDeniedError,
    502: Anthropic.InternalServerError,
    503: Anthropic.InternalServerError,
  },
  status: (error) => error.status,
  text: (error) => error.error.error.message,
  hook: (error) => error.error.hook,
  kind: (error) => [error.error.error.type],
};

// `ResponseError` is not exported; its name is what a user can test.
const ollama = {
  client: (url, headers) => new Ollama({ host: url, fetch: keeping(headers) }),
  errors: Object.fromEntries([400, 403, 502, 503].map((status) => [status, "ResponseError"])),
  status: (error) => error.status_code,
  text: (error) => error.error,
  hook: () => undefined,
  kind: () => undefined,
};

const messagesOf = (prompt) => [{ role: "user", content: prompt }];

const calls = [
  {
    ...openai,
    route: "/v1/chat/completions",
    async ask(client, model, prompt, stream) {
      const got = await client.chat.completions.create({ model, messages: messagesOf(prompt), stream });
      return stream ? join(got, (chunk) => chunk.choices[0]?.delta.content) : got.choices[0].message.content;
    },
  },
  {
    ...openai,
    route: "/v1/completions",
    async ask(client, model, prompt, stream) {
      // The scripted models answer where an assistant's turn begins, which a bare prompt has to spell.
      const asked = { model, prompt: `${prompt}<|im_start|>assistant\n`, max_tokens: 64, stream };
      const got = await client.completions.create(asked);
      return stream ? join(got, (chunk) => chunk.choices[0]?.text) : got.choices[0].text;
    },
  },
  {
    ...openai,
    route: "/v1/responses",
    async ask(client, model, prompt, stream) {
      const got = await client.responses.create({ model, input: prompt, stream });
      if (!stream) return got.output_text;
      return join(got, (event) => (event.type === "response.output_text.delta" ? event.delta : ""));
    },
  },
  {
    ...anthropic,
    route: "/v1/messages",
    async ask(client, model, prompt, stream) {
      const asked = { model, messages: messagesOf(prompt), max_tokens: 64 };
      if (stream) return client.messages.stream(asked).finalText();
      const got = await client.messages.create(asked);
      return got.content.map((block) => block.text ?? "").join("");
    },
  },
  {
    ...ollama,
    route: "/api/chat",
    async ask(client, model, prompt, stream) {
      const got = await client.chat({ model, messages: messagesOf(prompt), stream });
      return stream ? join(got, (part) => part.message.content) : got.message.content;
    },
  },
  {
    ...ollama,
    route: "/api/generate",
    async ask(client, model, prompt, stream) {
      const got = await client.generate({ model, prompt, stream });
      return stream ? join(got, (part) => part.response) : got.response;
    },
  },
];

module.exports = { calls };
