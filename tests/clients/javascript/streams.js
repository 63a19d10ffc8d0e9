"use strict";
// One entry per route and SDK: how its own stream helpers read a stream, and what they make of it at the end.

const { calls } = require("./calls.js");

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { name: "get_weather", description: "Tells the weather of a city." };
const tool = { type: "function", function: { ...weather, parameters } };

/** What `tell` hands back: text, stop reason, names and arguments of calls, refusal. */
const helpers = {
  "/v1/chat/completions": {
    tools: [tool],
    stops: { whole: "stop", refused: "stop", filtered: "content_filter", called: "tool_calls" },
    async tell(client, model, prompt, onText, asked) {
      const messages = [{ role: "user", content: prompt }];
      const stream = client.chat.completions.stream({ model, messages, ...asked });
      stream.on("content", onText);
      const { message, finish_reason: stop } = (await stream.finalChatCompletion()).choices[0];
      const made = (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
      return { text: message.content ?? "", stop, calls: made, refusal: message.refusal };
    },
  },
  "/v1/completions": {
    stops: { whole: "stop", refused: "stop", filtered: "content_filter" },
    async tell(client, model, prompt, onText) {
      const asked = { model, prompt: `${prompt}<|im_start|>assistant\n`, max_tokens: 64, stream: true };
      return gathered(await client.completions.create(asked), onText, (chunk) => ({
        text: chunk.choices[0]?.text,
        stop: chunk.choices[0]?.finish_reason,
      }));
    },
  },
  "/v1/responses": {
    tools: [{ type: "function", ...weather, parameters, strict: false }],
    stops: { whole: "completed", refused: "completed", filtered: "incomplete", called: "completed" },
    async tell(client, model, prompt, onText, asked) {
      const stream = client.responses.stream({ model, input: prompt, ...asked });
      stream.on("response.output_text.delta", onText);
      const response = await stream.finalResponse();
      const parts = response.output.filter((item) => item.type === "message").flatMap((item) => item.content);
      const made = response.output.filter((item) => item.type === "function_call");
      return {
        text: response.output_text,
        stop: response.status,
        calls: made.map((item) => [item.name, JSON.parse(item.arguments)]),
        refusal: parts.find((part) => part.type === "refusal")?.refusal,
      };
    },
  },
  "/v1/messages": {
    tools: [{ ...weather, input_schema: parameters }],
    stops: { whole: "end_turn", refused: "refusal", filtered: "refusal", called: "tool_use" },
    async tell(client, model, prompt, onText, asked) {
      const messages = [{ role: "user", content: prompt }];
      const stream = client.messages.stream({ model, messages, max_tokens: 128, ...asked });
      stream.on("text", onText);
      const { content, stop_reason: stop } = await stream.finalMessage();
      const made = content.filter((block) => block.type === "tool_use").map((block) => [block.name, block.input]);
      return { text: content.map((block) => block.text ?? "").join(""), stop, calls: made };
    },
  },
  "/api/chat": {
    tools: [tool],
    stops: { whole: "stop", refused: "content_filter", filtered: "content_filter", called: "stop" },
    async tell(client, model, prompt, onText, asked) {
      const messages = [{ role: "user", content: prompt }];
      return gathered(await client.chat({ model, messages, stream: true, ...asked }), onText, (part) => ({
        text: part.message.content,
        stop: part.done_reason,
        calls: (part.message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]),
      }));
    },
  },
  "/api/generate": {
    stops: { whole: "stop", refused: "content_filter", filtered: "content_filter" },
    async tell(client, model, prompt, onText) {
      return gathered(await client.generate({ model, prompt, stream: true }), onText, (part) => ({
        text: part.response,
        stop: part.done_reason,
      }));
    },
  },
};

async function gathered(stream, onText, read) {
  const told = { text: "", stop: undefined, calls: [] };
  for await (const part of stream) {
    const { text, stop, calls: made } = read(part);
    told.text += text ?? "";
    told.stop = stop ?? told.stop;
    told.calls.push(...(made ?? []));
    if (text) onText();
  }
  return told;
}

module.exports = { streams: calls.map((call) => ({ ...call, ...helpers[call.route] })) };
