"use strict";
// How each SDK's own stream helper reads a recorded stream, and what its message holds then, in one form for all:
// `{ choices: [{ blocks: [[kind, …], …], stop }, …], error: [class, text] or null }`, where a block is
// `["thinking", text]`, `["text", text]`, `["refusal", text]`, `["call", name, arguments]`,
// `["server call", name, …]`, `["cut call", name]` or `["other", type]`.

const Anthropic = require("@anthropic-ai/sdk");
const OpenAI = require("openai");
const { calls } = require("./calls.js");

const messages = [{ role: "user", content: "Go on." }];

const block = (kind, text) => (text ? [[kind, text]] : []);
/** Those of a call; of one that broke off its text. */
function read(given) {
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

const thinkingOf = (fields) => fields.reasoning_content || fields.reasoning || "";
// The error of an answer that was cut for its length is not exported; an event with an error is thrown as it came.
const isOpenAIs = (error) =>
  error instanceof OpenAI.APIError || error.constructor.name === "LengthFinishReasonError" || error.type === "error";

/** What an item of `/v1/responses` tells. */
function told(item) {
  if (item.type === "message") {
    return item.content.flatMap((part) =>
      part.type === "refusal" ? block("refusal", part.refusal) : block("text", part.text),
    );
  }
  if (item.type === "reasoning") {
    const parts = [...(item.summary ?? []), ...(item.content ?? [])];
    return block("thinking", parts.map((part) => part.text).join(""));
  }
  const isClients = item.type === "function_call" || item.type === "custom_tool_call";
  if (isClients && item.status === "incomplete") return [["cut call", item.name]];
  if (item.type === "function_call") return [["call", item.name, read(item.arguments)]];
  if (item.type === "custom_tool_call") return [["call", item.name, item.input]];
  if (item.type.endsWith("_call")) return [["server call", item.type.replace(/_call$/, ""), null]];
  return [["other", item.type]];
}

/** What a block of `/v1/messages` tells. */
function toldOfBlock(each) {
  if (each.type === "text") return block("text", each.text);
  if (each.type === "thinking") return block("thinking", each.thinking);
  if (each.type === "tool_use") return [["call", each.name, each.input]];
  if (each.type === "server_tool_use" || each.type === "mcp_tool_use") return [["server call", each.name, {}]];
  return [["other", each.type]];
}

// `listen` reads a stream, hands what has been gathered to `keep` and says with `heard` that text or thinking has come;
// `choices` tells what was gathered; `isSaid` knows the errors that the SDK raises for what a server says.
const sdks = {
  "/v1/chat/completions": {
    isSaid: isOpenAIs,
    async listen(client, model, keep, heard) {
      const thinking = []; // The helper keeps the last piece of it alone: its user adds up the chunks.
      const stream = client.chat.completions.stream({ model, messages });
      stream.on("chunk", (chunk, { choices }) => {
        for (const { index, delta } of chunk.choices) {
          thinking[index] = (thinking[index] ?? "") + thinkingOf(delta);
          if (delta.content || delta.refusal || thinkingOf(delta)) heard();
        }
        keep({ choices, thinking });
      });
      keep({ ...(await stream.finalChatCompletion()), thinking });
    },
    choices: ({ choices, thinking }) =>
      choices.filter(Boolean).map(({ index, message, finish_reason: stop }) => {
        const made = [...(message.tool_calls ?? []).map((call) => call.function), message.function_call];
        const blocks = [
          ...block("thinking", thinking[index]),
          ...block("text", message.content),
          ...block("refusal", message.refusal),
          ...made.filter(Boolean).map((call) => ["call", call.name, read(call.arguments)]),
        ];
        return { blocks, stop };
      }),
  },
  // The SDK has no helper for these streams: its user adds up the chunks.
  "/v1/completions": {
    isSaid: isOpenAIs,
    async listen(client, model, keep, heard) {
      const gathered = [];
      keep(gathered);
      for await (const chunk of await client.completions.create({ model, prompt: "Go on.", stream: true })) {
        for (const { index, text, finish_reason: stop } of chunk.choices) {
          const choice = (gathered[index] ??= { text: "", stop: null });
          choice.text += text ?? "";
          choice.stop = stop ?? choice.stop;
          if (text) heard();
        }
      }
    },
    choices: (gathered) => gathered.map(({ text, stop }) => ({ blocks: block("text", text), stop })),
  },
  "/v1/responses": {
    isSaid: isOpenAIs,
    async listen(client, model, keep, heard) {
      let [response, deltas] = [undefined, ""];
      const stream = client.responses.stream({ model, input: "Go on." });
      stream.on("event", (event) => {
        if (["response.output_text.delta", "response.refusal.delta"].includes(event.type)) deltas += event.delta;
        if (/text\.delta$|refusal\.delta$/.test(event.type)) heard();
        keep({ deltas });
      });
      response = await stream.finalResponse();
      keep({ ...response, deltas });
    },
    choices: ({ output, status, incomplete_details: details }) =>
      output ? [{ blocks: output.flatMap(told), stop: [status, details?.reason ?? null] }] : [],
  },
  "/v1/messages": {
    isSaid: (error) => error instanceof Anthropic.AnthropicError,
    async listen(client, model, keep, heard) {
      const stream = client.messages.stream({ model, messages, max_tokens: 64 });
      stream.on("streamEvent", (event, snapshot) => {
        keep(snapshot);
        if (["text_delta", "thinking_delta"].includes(event.delta?.type)) heard();
      });
      keep(await stream.finalMessage());
    },
    choices: ({ content, stop_reason: stop }) => [{ blocks: content.flatMap(toldOfBlock), stop }],
  },
  // No helper here either.
  "/api/chat": native(
    (client, model) => client.chat({ model, messages, stream: true }),
    ({ message }) => [message.content, message.thinking, message.tool_calls],
  ),
  "/api/generate": native(
    (client, model) => client.generate({ model, prompt: "Go on.", stream: true }),
    (part) => [part.response, part.thinking],
  ),
};

function native(parts, said) {
  return {
    isSaid: () => true,
    async listen(client, model, keep, heard) {
      const gathered = { thinking: "", text: "", calls: [], stop: null };
      keep(gathered);
      for await (const part of await parts(client, model)) {
        const [text, thinking, made] = said(part);
        gathered.text += text ?? "";
        gathered.thinking += thinking ?? "";
        gathered.calls.push(...(made ?? []).map((call) => ["call", call.function.name, call.function.arguments]));
        if (part.done) gathered.stop = part.done_reason;
        if (text || thinking) heard();
      }
    },
    choices: ({ thinking, text, calls: made, stop }) => [
      { blocks: [...block("thinking", thinking), ...block("text", text), ...made], stop },
    ],
  };
}

/** Kind and text of each piece that a delta of a chat brings; the text may come in parts. */
function piecesOf(delta) {
  const parts = Array.isArray(delta.content) ? delta.content : [{ type: "text", text: delta.content ?? "" }];
  const texts = (part) => (part.thinking ?? [part]).map(({ text }) => [part.type, text]);
  return [...parts.flatMap(texts), ["thinking", thinkingOf(delta)], ["refusal", delta.refusal ?? ""]];
}

/** For streams of chats that the helper cannot read: its user adds up the chunks. */
const chatByHand = {
  isSaid: isOpenAIs,
  async listen(client, model, keep, heard) {
    const gathered = [];
    keep(gathered);
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
      for (const { index, delta, finish_reason: stop } of chunk.choices) {
        const choice = (gathered[index] ??= { thinking: "", text: "", refusal: "", stop: null });
        choice.stop = stop ?? choice.stop;
        const pieces = piecesOf(delta);
        for (const [kind, text] of pieces) choice[kind] += text;
        if (pieces.some(([, text]) => text)) heard();
      }
    }
  },
  choices: (gathered) =>
    gathered.map((choice) => ({
      blocks: ["thinking", "text", "refusal"].flatMap((kind) => block(kind, choice[kind])),
      stop: choice.stop,
    })),
};

/** Reads a stream to its end, or to the error that its SDK raises, with what had been gathered until then. */
async function hear(sdk, client, model, heard = () => {}) {
  let [message, error] = [null, null];
  try {
    await sdk.listen(client, model, (gathered) => (message = gathered), heard);
  } catch (raised) {
    error = raised;
  }
  const choices = message ? sdk.choices(message) : [];
  // As it would be written: without what is not there.
  const plain = JSON.parse(JSON.stringify(message));
  return { told: { choices, error: error && [error.constructor.name, error.message] }, message: plain, error };
}

const helpers = Object.fromEntries(calls.map((call) => [call.route, { ...call, ...sdks[call.route] }]));
const byHand = { ...helpers["/v1/chat/completions"], ...chatByHand };

module.exports = {
  hear,
  sdks: helpers,
  /** Streams that the helper of the `openai` package cannot read; its chunks can be. */
  byHand: {
    "/v1/chat/completions": {
      // What comes in parts it takes for "[object Object]".
      "mistral-parts": byHand,
      // The last event lacks the blank line behind it and is dropped with its stop reason; the helper raises then.
      "no-done": byHand,
    },
  },
};
