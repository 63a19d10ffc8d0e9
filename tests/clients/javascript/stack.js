"use strict";
// The servers that `run.py` has started, and what reached them.

const { randomUUID } = require("node:crypto");

const stack = JSON.parse(process.env.CLIENTS_STACK);

/** A model name of one test alone, and the requests that named it. */
class Seen {
  model = `text-${randomUUID()}`;

  async #at(where) {
    const response = await fetch(`${stack.records}/${where}/${this.model}`);
    return response.json();
  }

  upstream() {
    return this.#at("upstream");
  }

  webhook() {
    return this.#at("webhook");
  }

  async events() {
    return (await this.webhook()).map((call) => call.body.event);
  }
}

module.exports = { stack, Seen };
