"use strict";
// Streams as servers have sent them, through the SDKs' own stream helpers, times each verdict. What an SDK makes of a
// stream without a gateway says what it has to make of it with one.

const assert = require("node:assert/strict");
const { describe, test } = require("node:test");
const { isDeepStrictEqual } = require("node:util");
const { byHand, hear, sdks } = require("./recorded.js");
const { Seen, stack } = require("./stack.js");
const { streams: helpers } = require("./streams.js");

const stops = Object.fromEntries(helpers.map((helper) => [helper.route, helper.stops]));
const plainStops = { tool_calls: "stop", function_call: "stop", tool_use: "end_turn" };
const cuts = ["whole", "frames", "crumbs"];

const helperOf = ({ route }) => sdks[route];
/** The SDK's helper; where that cannot read the stream, who adds up its chunks. */
const readerOf = (stream) => byHand[stream.route]?.[stream.name] ?? helperOf(stream);

/** What the SDK hears of a stream; `scenario` null is without a gateway. */
async function listen(stream, scenario, cut, seen = undefined, reader = readerOf(stream)) {
  const headers = [];
  const client = reader.client(scenario ? stack.gateways[scenario] : stack.upstream, headers);
  const { model } = seen ?? new Seen(`recorded-${stream.name}.${cut}.`);
  const found = await hear(reader, client, model, seen && (() => seen.goOn()));
  assert.equal(headers.length, 1, "it was asked again");
  return found;
}

const found = new Map();

/** What the SDK hears without a gateway. */
function direct(stream, reader = readerOf(stream)) {
  const known = found.get(stream) ?? new Map();
  found.set(stream, known);
  if (!known.has(reader)) known.set(reader, listen(stream, null, "whole", undefined, reader));
  return known.get(reader);
}

/**
 * What the SDK is to be told where nobody changes anything; null where it cannot read such a stream. One of
 * `/v1/responses` that leaves out what the SDK wants says all of it in its last event.
 */
function whole({ route, response }, { told, error }) {
  if (response?.status === "completed") return { choices: sdks[route].choices(response), error: null };
  return error === null || sdks[route].isSaid(error) ? told : null;
}

/** The same, where more is asked than that nothing changes: whoever reads it can. */
async function toChange(stream) {
  const heard = await direct(stream);
  const told = whole(stream, heard);
  assert.ok(told, heard.error);
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

function isAPlainError(stream, { error, told }, status) {
  const sdk = helperOf(stream);
  assert.deepEqual([sdk.status(error), sdk.text(error)], [status, stack.user_message]);
  assert.ok(told.choices.every((choice) => choice.blocks.length === 0));
}

/** Holds an answer that a hook has ended against the one without hooks. */
function endsInMidStream(stream, { told: { choices }, message, error }, told, ending) {
  const { route } = stream;
  choices.forEach((choice, at) => {
    const unchanged = told.choices[at];
    if (!unchanged?.blocks.length) return; // A response that failed does not repeat what it had said.
    assert.ok(textOf(unchanged, "text", "refusal").startsWith(saidByModel(choice)));
    assert.ok(textOf(unchanged, "thinking").startsWith(textOf(choice, "thinking")));
  });
  assert.ifError(error);
  assert.ok(choices.some((choice) => flat(choice.stop) === stops[route][ending]));
  const isTold = choices.some((choice) => textOf(choice, "refusal").endsWith(stack.user_message));
  assert.equal(isTold, ending === "refused" && ["/v1/chat/completions", "/v1/responses"].includes(route));
  if (route === "/v1/responses") {
    assert.equal(message.deltas, choices.map((choice) => textOf(choice, "text", "refusal")).join(""));
    const reason = ending === "refused" ? null : "content_filter";
    assert.deepEqual(choices.map((choice) => choice.stop[1]), [reason]);
  }
}

for (const route of Object.keys(sdks)) {
  const sdk = sdks[route];
  describe(`recorded streams of ${route}`, { concurrency: 8 }, () => {
    stack.recorded.forEach((stream, place) => {
      if (stream.route !== route) return;
      const { name } = stream;

      ["none", "post-allow", "piecewise-allow"].forEach((scenario, step) => {
        test(`recorded ${name}: what is allowed is heard as without a gateway (${scenario})`, async () => {
          for (const reader of new Set([helperOf(stream), readerOf(stream)])) {
            const heard = await listen(stream, scenario, cuts[(place + step) % cuts.length], undefined, reader);
            const without = await direct(stream, reader);
            const told = whole(stream, without);
            if (told === null || isDeepStrictEqual(told, without.told)) {
              const judged = scenario === "none" ? (it) => it : withoutAlternatives;
              assert.deepEqual([heard.told, heard.message], [without.told, without.message].map(judged));
            } else {
              assert.deepEqual(heard.told, told);
              assert.equal(heard.message.deltas, told.choices.map((choice) => textOf(choice, "text")).join(""));
            }
          }
        });
      });

      if (stream.speaks) {
        test(`recorded ${name}: broken off it is what it is without hooks, and an error with them`, async () => {
          const told = await toChange(stream);
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
          isAPlainError(stream, await listen(stream, `post-${verdict}`, cuts[place % cuts.length]), status);
        });

        for (const [ending, scenario] of [["refused", "piecewise"], ["filtered", "filtered"]]) {
          test(`recorded ${name}: ${verdict} in mid-stream ends it with what was let go (${ending})`, async () => {
            const told = await toChange(stream);
            const seen = new Seen(`recorded-${name}.paused.`);
            const heard = await listen(stream, `${scenario}-later-${verdict}`, "paused", seen);
            const shown = (await seen.webhook()).map(({ body }) => body);
            if (shown.every(({ segment }) => segment.index === 0)) return assert.deepEqual(heard.told, told);
            const letGo = firstSegments(shown);
            const { choices } = heard.told;
            choices.forEach((choice, at) => {
              assert.ok(isLetGo(saidByModel(choice), letGo.texts, told.choices[at], "text", "refusal"));
              assert.ok(isLetGo(textOf(choice, "thinking"), letGo.thinking, told.choices[at], "thinking"));
              const made = choice.blocks.filter(([kind]) => kind.endsWith("call"));
              assert.ok(made.every(([, called]) => letGo.calls.includes(called)));
            });
            const [first] = told.choices.flatMap((choice) => choice.blocks)[0] ?? ["text"];
            // The upstream went on only when this had been heard.
            if (first === "text" || first === "thinking") assert.ok(choices.some((choice) => textOf(choice, first)));
            endsInMidStream(stream, heard, told, ending);
          });
        }
      }

      for (const [scenario, cut] of [["post-spell", "frames"], ["piecewise-spell", "crumbs"]]) {
        test(`recorded ${name}: a rewritten answer is heard rewritten (${scenario})`, async () => {
          const told = await toChange(stream);
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
      for (const cut of ["frames", "crumbs", "paused"]) {
        for (const [ending, scenario] of [["refused", "tool-ask"], ["filtered", "filtered-tool-ask"]]) {
          test(`recorded ${name}: a tool call that needs approval ends the answer (${cut}, ${ending})`, async () => {
            const told = await toChange(stream);
            assert.ok(called(told).length);
            const seen = cut === "paused" ? new Seen(`recorded-${name}.paused.`) : undefined;
            const heard = await listen(stream, scenario, cut, seen);
            const blocks = heard.told.choices.flatMap((choice) => choice.blocks);
            assert.ok(!blocks.some((each) => isCall(each) || each[0] === "cut call"));
            if (blocks.length) endsInMidStream(stream, heard, told, ending);
            else isAPlainError(stream, heard, 403);
            // The upstream went on only when something had been heard.
            if (seen && stream.speaks_first) assert.ok(blocks.length);
          });
        }

        if (cut === "paused") continue;
        test(`recorded ${name}: a denied tool call is never heard (${cut})`, async () => {
          const told = await toChange(stream);
          assert.ok(called(told).length);
          const { told: heard } = await listen(stream, "tool-deny", cut);
          const isGone = (each) => isCall(each) || String(each[1]).endsWith("_tool_result");
          const expected = told.choices.map(({ blocks, stop }) => ({
            blocks: blocks.filter((each) => !isGone(each)),
            stop: plainStops[stop] ?? stop,
          }));
          assert.deepEqual(heard, { choices: expected, error: told.error });
        });

        test(`recorded ${name}: a rewritten tool call is heard rewritten (${cut})`, async () => {
          const told = await toChange(stream);
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
