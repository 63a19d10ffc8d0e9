"""The webhook of the tests: `POST /VERDICT` is answered with that verdict, for either event."""

import json

from . import server

#: What `modify` looks for, in prompts and in the model's answer, and what it puts there.
PROMPT_SECRET = "swordfish"
ANSWER_SECRET = "123-45-6789"
MASK = "[masked]"

USER_MESSAGE = "Not like this."
AGENT_MESSAGE = "The policy of these tests says so."


#: Where a rewritten tool call goes.
CITY = "Rome"


def spelt(text):
    """`text` in another spelling: piece by piece it is the same as in one."""
    return text.replace("e", "<é>").replace("o", "")


def spelt_reply(call):
    """What a hook says that rewrites all text, of an answer or a segment."""
    if call.get("output_text"):
        return 200, {"permission": "modify", "output_text": spelt(call["output_text"])}
    return 200, {"permission": "allow"}


def tool_reply(verdict):
    """What a hook says to a tool call, in the native contract."""
    if verdict == "modify":
        return 200, {"hook_specific_output": {"updated_input": {"city": CITY}}}
    decision = {"permission_decision": verdict, "permission_decision_reason": USER_MESSAGE}
    return 200, {"hook_specific_output": decision}


def reply(verdict, call):
    """Status and body for one call of the hook. `number-VERDICT` is that verdict on what holds the answer's number,
    `later-VERDICT` on all segments but a text's first."""
    phase, _, rest = verdict.partition("-")
    if phase == "tool":
        return tool_reply(rest)
    if verdict == "spell":
        return spelt_reply(call)
    if phase == "later":
        verdict = rest if call.get("segment", {}).get("index") else "allow"
    if phase == "number":
        verdict = rest if ANSWER_SECRET in call.get("output_text", "") else "allow"
    if verdict == "unavailable":
        return 500, {"oops": True}
    messages = {"user_message": USER_MESSAGE, "agent_message": AGENT_MESSAGE}
    if verdict == "unsupported":
        # More messages than a prompt can hold.
        turns = [{"role": role, "content": "one more"} for role in ("user", "assistant", "user")]
        return 200, {"permission": "modify", **messages, "messages": turns}
    if verdict != "modify":
        return 200, {"permission": verdict, **messages}
    if call["event"] == "pre_inference":
        masked = json.loads(json.dumps(call["messages"]).replace(PROMPT_SECRET, MASK))
        return 200, {"permission": "modify", "messages": masked}
    return 200, {"permission": "modify", "output_text": call["output_text"].replace(ANSWER_SECRET, MASK)}


def start(record):
    class Webhook(server.Handler):
        def do_POST(self):
            body = self.body()
            record.add(self, body)
            self.answer(*reply(self.path.strip("/"), json.loads(body)))

    return server.start(Webhook)
