"use strict";
// Streams as servers have sent them, through the SDKs' own stream helpers, times each verdict. What an SDK makes of a
// stream without a gateway says what it has to make of it with one.

const assert = require("node:assert/strict");
const { describe, test } = require("node:test");
const { isDeepStrictEqual } = require("node:util");
const { hear, sdks } = require("./recorded.js");
const { Seen, stack } = require("./stack.js");
const { streams: helpers } = require("./streams.js");

const stops = Object.fromEntries(helpers.map((helper) => [helper.route, helper.stops]));
const plainStops = { tool_calls: "stop", function_call: "stop", tool_use: "end_turn" };
const cuts = ["whole", "frames", "crumbs"];

/** What the SDK leaves out without a word: text in parts. */
const isUnheard = ({ route, name }) => route === "/v1/chat/completions" && name === "mistral-parts";

/** What the SDK hears of a stream; `scenario` null is without a gateway. */
async function listen({ route, name }, scenario, cut, seen = undefined) {
  const headers = [];
  const client = sdks[route].client(scenario ? stack.gateways[scenario] : stack.upstream, headers);
  const { model } = seen ?? new Seen(`recorded-${name}.${cut}.`);
  const found = await hear(sdks[route], client, model, seen && (() => seen.goOn()));
  assert.equal(headers.length, 1, "it was asked again");
  return found;
}

const found = new Map();

/** What the SDK hears without a gateway. */
function direct(stream) {
  if (!found.has(stream)) found.set(stream, listen(stream, null, "whole"));
  return found.get(stream);
}

/**
 * What the SDK is to be told where nobody changes anything; null where it cannot read such a stream. One of
 * `/v1/responses` that leaves out what the SDK wants says all of it in its last event.
 */
function whole({ route, response }, { told, error }) {
  if (response?.status === "completed") return { choices: sdks[route].choices(response), error: null };
  return error === null || sdks[route].isSaid(error) ? told : null;
}

/** The same, where more can be asked than that nothing changes; where it cannot, the test is skipped. */
async function toChange(t, stream) {
  const told = isUnheard(stream) ? null : whole(stream, await direct(stream));
  if (!told) t.skip("this SDK cannot read it");
  return told;
}

const spelt = (text) => text.replaceAll("e", "<é>").replaceAll("o", "");
const textOf = (choice, ...kinds) =>
  choice.blocks
    .filter(([kind]) => kinds.includes(kind))
    .map(([, text]) => text)
    .join("");
const saidByModel = (choice) => {
  const said = textOf(choice, "text", "refusal");
  return said.endsWith(stack.user_message) ? said.slice(0, -stack.user_message.length) : said;
};
const others = ({ blocks, stop }) => [blocks.filter(([kind]) => kind !== "text" && kind !== "refusal"), stop];
const isCall = ([kind]) => kind === "call" || kind === "server call";
const called = (told) => told.choices.flatMap((choice) => choice.blocks.filter(isCall));
const flat = (stop) => (Array.isArray(stop) ? stop[0] : stop);

/** The same without what the model might have said instead of a token: no hook is shown that, so it does not pass where
 * one judges text. */
function withoutAlternatives(heard) {
  if (Array.isArray(heard)) return heard.map(withoutAlternatives);
  if (heard === null || typeof heard !== "object") return heard;
  const kept = Object.fromEntries(Object.entries(heard).map(([key, value]) => [key, withoutAlternatives(value)]));
  if ("token" in kept && kept.top_logprobs) {
    kept.top_logprobs = kept.top_logprobs.filter(({ token }) => token === "" || token === kept.token);
  }
  return kept;
}

/** What the hook let go: of each text its first segment, and calls by name. */
function firstSegments(shown) {
  const first = shown.filter(({ segment }) => segment.index === 0);
  return {
    texts: ["", ...first.map((body) => body.output_text)],
    thinking: ["", ...first.map((body) => body.output_thinking)],
    calls: first.flatMap((body) => body.tool_calls ?? []).map((call) => call.function.name),
  };
}

/** All that hooks let go, or nothing; but what stands behind a refused block stays, and then it is whole blocks. */
function isLetGo(said, letGo, unchanged, ...kinds) {
  if (letGo.includes(said)) return true;
  const blocks = (unchanged?.blocks ?? []).filter(([kind]) => kinds.includes(kind)).map(([, text]) => text);
  const isWhole = blocks.some((_, at) => blocks.slice(0, at + 1).join("") === said);
  return isWhole && letGo.some((text) => text?.startsWith(said));
}

for (const route of Object.keys(sdks)) {
  const sdk = sdks[route];
  describe(`recorded streams of ${route}`, { concurrency: 8 }, () => {
    stack.recorded.forEach((stream, place) => {
      if (stream.route !== route) return;
      const { name } = stream;

      ["none", "post-allow", "piecewise-allow"].forEach((scenario, step) => {
        test(`recorded ${name}: what is allowed is heard as without a gateway (${scenario})`, async () => {
          const heard = await listen(stream, scenario, cuts[(place + step) % cuts.length]);
          const without = await direct(stream);
          const told = whole(stream, without);
          if (told === null || isDeepStrictEqual(told, without.told)) {
            const judged = scenario === "none" ? (it) => it : withoutAlternatives;
            assert.deepEqual([heard.told, heard.message], [without.told, without.message].map(judged));
          } else {
            assert.deepEqual(heard.told, told);
            assert.equal(heard.message.deltas, told.choices.map((choice) => textOf(choice, "text")).join(""));
          }
        });
      });

      if (stream.speaks) {
        test(`recorded ${name}: broken off it is what it is without hooks, and an error with them`, async (t) => {
          const told = await toChange(t, stream);
          if (!told) return;
          const scenarios = [null, "none", "piecewise-allow"];
          const [without, passed, judged] = await Promise.all(
            scenarios.map((scenario) => listen(stream, scenario, "torn", new Seen(`recorded-${name}.torn.`))),
          );
          if (isDeepStrictEqual(told, (await direct(stream)).told)) {
            assert.deepEqual([passed.told, passed.message], [without.told, without.message]);
          }
          assert.match(judged.error?.message ?? "", /broke off/);
          assert.ok(sdk.isSaid(judged.error));
          if (route === "/v1/responses") {
            const said = told.choices.map((choice) => textOf(choice, "text", "refusal")).join("");
            return assert.ok(said === "" || said.startsWith(judged.message.deltas));
          }
          const { choices } = judged.told;
          assert.ok(choices.some((choice) => textOf(choice, "text", "refusal", "thinking")));
          told.choices.forEach((unchanged, at) => {
            if (!choices[at]) return;
            assert.ok(textOf(unchanged, "text", "refusal").startsWith(textOf(choices[at], "text", "refusal")));
            assert.ok(textOf(unchanged, "thinking").startsWith(textOf(choices[at], "thinking")));
          });
        });
      }

      for (const [verdict, status] of [["deny", 400], ["ask", 403]]) {
        test(`recorded ${name}: ${verdict} of the whole is a plain error`, async () => {
          const { error, told } = await listen(stream, `post-${verdict}`, cuts[place % cuts.length]);
          assert.deepEqual([sdk.status(error), sdk.text(error)], [status, stack.user_message]);
          assert.ok(told.choices.every((choice) => choice.blocks.length === 0));
        });

        test(`recorded ${name}: ${verdict} in mid-stream ends it with what was let go`, async (t) => {
          const told = await toChange(t, stream);
          if (!told) return;
          const seen = new Seen(`recorded-${name}.paused.`);
          const heard = await listen(stream, `piecewise-later-${verdict}`, "paused", seen);
          const shown = (await seen.webhook()).map(({ body }) => body);
          if (shown.every(({ segment }) => segment.index === 0)) return assert.deepEqual(heard.told, told);
          const letGo = firstSegments(shown);
          const { choices } = heard.told;
          choices.forEach((choice, at) => {
            assert.ok(isLetGo(saidByModel(choice), letGo.texts, told.choices[at], "text", "refusal"));
            assert.ok(isLetGo(textOf(choice, "thinking"), letGo.thinking, told.choices[at], "thinking"));
            const made = choice.blocks.filter(([kind]) => kind.endsWith("call"));
            assert.ok(made.every(([, called]) => letGo.calls.includes(called)));
            const unchanged = told.choices[at];
            if (!unchanged?.blocks.length) return; // A response that failed does not repeat what it had said.
            assert.ok(textOf(unchanged, "text", "refusal").startsWith(saidByModel(choice)));
            assert.ok(textOf(unchanged, "thinking").startsWith(textOf(choice, "thinking")));
          });
          const [first] = told.choices.flatMap((choice) => choice.blocks)[0] ?? ["text"];
          // The upstream went on only when this had been heard.
          if (first === "text" || first === "thinking") assert.ok(choices.some((choice) => textOf(choice, first)));
          assert.ifError(heard.error);
          assert.ok(choices.some((choice) => flat(choice.stop) === stops[route].refused));
          if (["/v1/chat/completions", "/v1/responses"].includes(route)) {
            assert.ok(choices.some((choice) => textOf(choice, "refusal").endsWith(stack.user_message)));
          }
          if (route === "/v1/responses") {
            const said = choices.map((choice) => textOf(choice, "text", "refusal"));
            assert.equal(heard.message.deltas, said.join(""));
          }
        });
      }

      for (const [scenario, cut] of [["post-spell", "frames"], ["piecewise-spell", "crumbs"]]) {
        test(`recorded ${name}: a rewritten answer is heard rewritten (${scenario})`, async (t) => {
          const told = await toChange(t, stream);
          if (!told) return;
          const heard = await listen(stream, scenario, cut);
          assert.deepEqual(heard.told.error, told.error);
          assert.equal(heard.told.choices.length, told.choices.length);
          heard.told.choices.forEach((choice, at) => {
            const unchanged = told.choices[at];
            assert.equal(textOf(choice, "text", "refusal"), spelt(textOf(unchanged, "text", "refusal")));
            assert.deepEqual(others(choice), others(unchanged));
          });
          const { told: without, message } = await direct(stream);
          if (route === "/v1/responses" && isDeepStrictEqual(told, without)) {
            assert.equal(heard.message.deltas, spelt(message.deltas));
          }
        });
      }

      if (!stream.calls) return;
      for (const cut of ["frames", "crumbs"]) {
        test(`recorded ${name}: a denied tool call is never heard (${cut})`, async (t) => {
          const told = await toChange(t, stream);
          if (!told) return;
          assert.ok(called(told).length);
          const { told: heard } = await listen(stream, "tool-deny", cut);
          const isGone = (each) => isCall(each) || String(each[1]).endsWith("_tool_result");
          const expected = told.choices.map(({ blocks, stop }) => ({
            blocks: blocks.filter((each) => !isGone(each)),
            stop: plainStops[stop] ?? stop,
          }));
          assert.deepEqual(heard, { choices: expected, error: told.error });
        });

        test(`recorded ${name}: a rewritten tool call is heard rewritten (${cut})`, async (t) => {
          const told = await toChange(t, stream);
          if (!told) return;
          assert.ok(called(told).length);
          const { told: heard } = await listen(stream, "tool-modify", cut);
          if (called(told).some(([, , given]) => given === null || typeof given !== "object")) {
            // Neither what a server has run nor free text takes other arguments.
            return assert.ok(heard.error || heard.choices.some(({ stop }) => flat(stop) === stops[route].refused));
          }
          const rewrite = ([kind, called, given]) =>
            kind === "call" ? [kind, called, { ...given, city: stack.city }] : [kind, called, given];
          const expected = told.choices.map(({ blocks, stop }) => ({
            blocks: blocks.map((each) => (isCall(each) ? rewrite(each) : each)),
            stop,
          }));
          assert.deepEqual(heard, { choices: expected, error: told.error });
        });
      }
    });
  });
}
