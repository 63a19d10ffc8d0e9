"use strict";
// Each route's own stream helpers, times each verdict of a hook after inference and of a hook on tool calls.

const assert = require("node:assert/strict");
const { describe, test } = require("node:test");
const { Seen, stack } = require("./stack.js");
const { streams } = require("./streams.js");

const { gateways, answer, mask, before_pause: before } = stack;
const prompt = "What is your number?";

/** Asks with the SDK's stream helper; what it made of the stream or threw, and how many responses it needed. */
async function tell(stream, scenario, seen, asked = {}) {
  const headers = [];
  const client = stream.client(gateways[scenario], headers);
  try {
    const told = await stream.tell(client, seen.model, prompt, () => seen.goOn(), asked);
    return { ...told, text: told.text.trim(), responses: headers.length };
  } catch (error) {
    return { error, responses: headers.length };
  }
}

for (const stream of streams) {
  describe(`${stream.route} told by its stream helper`, { concurrency: 4 }, () => {
    for (const scenario of ["none", "pre-allow", "post-allow", "tool-deny"]) {
      test(`what is allowed is told whole (${scenario})`, async () => {
        const { error, text, stop, refusal } = await tell(stream, scenario, new Seen());
        assert.ifError(error);
        assert.deepEqual([text, stop, refusal ?? null], [answer, stream.stops.whole, null]);
      });
    }

    for (const [verdict, status] of [["deny", 400], ["ask", 403], ["unavailable", 503]]) {
      test(`${verdict} before any text is a plain error`, async () => {
        const { error, responses } = await tell(stream, `post-${verdict}`, new Seen());
        assert.ok(error, "it was answered");
        if (typeof stream.errors[status] === "string") assert.equal(error.name, stream.errors[status]);
        else assert.ok(error instanceof stream.errors[status], `${error}`);
        assert.equal(stream.status(error), status);
        assert.equal(responses, 1, "it was retried");
      });
    }

    for (const scenario of ["number-blocked", "number-deny", "number-ask"]) {
      test(`a refusal in mid-stream ends it with what was let go (${scenario})`, async () => {
        const { error, text, stop, refusal, responses } = await tell(stream, scenario, new Seen("paused"));
        assert.ifError(error);
        assert.ok(text && before.startsWith(text), text);
        if (scenario === "number-blocked") assert.equal(text, before.trim());
        assert.deepEqual([stop, responses], [stream.stops.refused, 1]);
        if (["/v1/chat/completions", "/v1/responses"].includes(stream.route)) assert.ok(refusal);
      });
    }

    for (const [scenario, masked] of [["post-modify", mask], ["number-modify", mask], ["number-redacted", "<SSN>"]]) {
      test(`a rewritten answer is told rewritten (${scenario})`, async () => {
        const { error, text, stop } = await tell(stream, scenario, new Seen());
        assert.ifError(error);
        assert.deepEqual([text, stop], [answer.replace(stack.answer_secret, masked), stream.stops.whole]);
      });
    }

    if (!stream.tools) return;
    const { tools } = stream;

    test("a tool call without hooks is told", async () => {
      const { error, calls, stop } = await tell(stream, "none", new Seen("tool"), { tools });
      assert.ifError(error);
      assert.deepEqual([calls, stop], [[["get_weather", { city: "Paris" }]], stream.stops.called]);
    });

    test("a denied tool call is never told", async () => {
      const { error, calls, text, stop } = await tell(stream, "tool-deny", new Seen("tool"), { tools });
      assert.ifError(error);
      assert.deepEqual([calls, text, stop], [[], "", stream.stops.whole]);
    });

    test("a tool call that needs approval is refused", async () => {
      const { error, responses } = await tell(stream, "tool-ask", new Seen("tool"), { tools });
      assert.ok(error, "it was answered");
      assert.deepEqual([stream.status(error), stream.text(error), responses], [403, stack.user_message, 1]);
    });

    test("a rewritten tool call is told rewritten", async () => {
      const { error, calls, stop } = await tell(stream, "tool-modify", new Seen("tool"), { tools });
      assert.ifError(error);
      assert.deepEqual([calls, stop], [[["get_weather", { city: stack.city }]], stream.stops.called]);
    });
  });
}
