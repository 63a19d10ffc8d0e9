"use strict";
// The servers that `run.py` has started, and what reached them.

const { randomUUID } = require("node:crypto");

const stack = JSON.parse(process.env.CLIENTS_STACK);

/** A model name of one test alone, and the requests that named it. */
class Seen {
  constructor(kind = "text") {
    this.model = `${kind}-${randomUUID()}`;
  }

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

  /** Lets a paused stream go on. */
  goOn() {
    return this.#at("go-on");
  }

  async events() {
    return (await this.webhook()).map((call) => call.body.event);
  }
}

module.exports = { stack, Seen };
