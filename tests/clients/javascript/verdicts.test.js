"use strict";
// Each route that an SDK speaks, times each verdict: what its user sees, and what the upstream and the webhook saw.

const assert = require("node:assert/strict");
const { describe, test } = require("node:test");
const { calls } = require("./calls.js");
const { Seen, stack } = require("./stack.js");

const { gateways, answer, mask } = stack;
const secret = stack.prompt_secret;
const prompt = `The word is ${secret}.`;
const masked = answer.replace(stack.answer_secret, mask);

// Verdict: status, `permission`, OpenAI's type and code, Anthropic's type.
const refusals = {
  deny: [400, "deny", "hook_denied", "hook_deny", "invalid_request_error"],
  ask: [403, "ask", "hook_approval_required", "hook_ask", "permission_error"],
  unavailable: [503, "unavailable", "hook_failed", "hook_unavailable", "overloaded_error"],
  unsupported: [502, "modify", "hook_failed", "hook_modify_unsupported", "api_error"],
};

/** Asks, and hands back what came or was thrown, with the headers of every response. */
async function ask(call, scenario, seen, stream) {
  const headers = [];
  const client = call.client(gateways[scenario], headers);
  try {
    const text = await call.ask(client, seen.model, prompt, stream);
    return { text: text.trim(), headers };
  } catch (error) {
    return { error, headers };
  }
}

/** Asks, and expects the SDK's own error for the verdict that the scenario is named after. */
async function refused(call, scenario, seen, stream) {
  const { error, headers: responses } = await ask(call, scenario, seen, stream);
  const [phase, verdict] = scenario.split("-");
  const [status, permission, type, code, anthropicType] = refusals[verdict];
  assert.ok(error, "it was answered");
  if (typeof call.errors[status] === "string") assert.equal(error.name, call.errors[status]);
  else assert.ok(error instanceof call.errors[status], `${error}`);
  assert.equal(call.status(error), status);
  const byPolicy = verdict === "deny" || verdict === "ask";
  if (byPolicy) assert.equal(call.text(error), stack.user_message);
  else assert.ok(call.text(error));
  assert.equal(responses.length, 1, "it was retried");
  const [headers] = responses;
  assert.equal(headers.get("x-should-retry"), "false");
  const requestId = headers.get("x-ollama-request-id");
  const [{ body }, ...more] = await seen.webhook();
  assert.deepEqual([body.event, body.request_id], [`${phase}_inference`, requestId]);
  assert.equal(more.length, 0);
  const hook = call.hook(error);
  if (!hook) return assert.ok(call.route.startsWith("/api/"), "only Ollama's SDK drops the hook");
  assert.equal(hook.permission, permission);
  assert.equal(hook.phase, `${phase}_inference`);
  assert.equal(hook.request_id, requestId);
  if (byPolicy) assert.equal(hook.agent_message, stack.agent_message);
  if (verdict === "ask") assert.ok(hook.fingerprint);
  const kind = call.route === "/v1/messages" ? [anthropicType] : [type, code, null];
  assert.deepEqual(call.kind(error), kind);
}

for (const call of calls) {
  describe(call.route, { concurrency: 4 }, () => {
    for (const stream of [false, true]) {
      const form = stream ? "stream" : "whole";

      for (const scenario of ["none", "pre-allow", "post-allow", "fail-open"]) {
        test(`${form}: what is allowed passes (${scenario})`, async () => {
          const seen = new Seen();
          const { text, headers, error } = await ask(call, scenario, seen, stream);
          assert.ifError(error);
          assert.equal(text, answer);
          const [request, ...more] = await seen.upstream();
          assert.ok(JSON.stringify(request.body).includes(secret));
          assert.equal(more.length, 0);
          const [hook] = await seen.webhook();
          if (hook) assert.equal(headers.at(-1).get("x-ollama-request-id"), hook.body.request_id);
        });
      }

      for (const verdict of ["deny", "ask", "unavailable"]) {
        test(`${form}: a pre hook's ${verdict} never reaches the upstream and is not retried`, async () => {
          const seen = new Seen();
          await refused(call, `pre-${verdict}`, seen, stream);
          assert.deepEqual(await seen.upstream(), []);
        });
      }

      test(`${form}: the upstream sees what a pre hook wrote`, async () => {
        const seen = new Seen();
        const { text, error } = await ask(call, "pre-modify", seen, stream);
        assert.ifError(error);
        assert.equal(text, answer);
        const [request, ...more] = await seen.upstream();
        assert.ok(JSON.stringify(request.body).includes(`The word is ${mask}.`));
        assert.ok(!JSON.stringify(request.body).includes(secret));
        assert.equal(more.length, 0);
      });

      if (["/v1/completions", "/api/generate"].includes(call.route)) {
        test(`${form}: a prompt cannot hold a conversation`, async () => {
          const seen = new Seen();
          await refused(call, "pre-unsupported", seen, stream);
          assert.deepEqual(await seen.upstream(), []);
        });
      }
    }

    for (const verdict of ["deny", "ask", "unavailable"]) {
      test(`a post hook's ${verdict} is not retried`, async () => {
        const seen = new Seen();
        await refused(call, `post-${verdict}`, seen, false);
        assert.equal((await seen.upstream()).length, 1);
      });
    }

    test("the client sees what a post hook wrote", async () => {
      const seen = new Seen();
      const { text, error } = await ask(call, "post-modify", seen, false);
      assert.ifError(error);
      assert.equal(text, masked);
      assert.equal((await seen.upstream()).length, 1);
    });

    test("webhooks of a configuration file speak the same contract", async () => {
      const seen = new Seen();
      const { error } = await ask(call, "yaml-webhooks", seen, false);
      assert.equal(call.status(error), 403);
      assert.equal(call.text(error), stack.user_message);
      assert.deepEqual(await seen.events(), ["pre_inference", "post_inference"]);
    });
  });
}
