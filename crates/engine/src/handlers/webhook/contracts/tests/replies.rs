//! What each vendor's reply comes to, documented ones and others.

use super::*;

#[test]
fn agentgateway_is_told_apart_by_the_shape_of_its_action() {
    let messages = |last: &str| {
        let roles = ["system", "user", "assistant", "tool", "user"];
        let texts = ["be brief", "mail [m]", r#"{"to":"[m]"}"#, "sent", last];
        let all = roles.iter().zip(texts).map(|(role, text)| json!({"role": role, "content": text}));
        all.collect::<Value>()
    };
    let choice = |text: &str| json!({"message": {"role": "assistant", "content": text}});
    hold(
        Contract::AgentGateway,
        &json!({}),
        &[
            (PreInference, json!({"action": {}}), "allow"),
            (PreInference, json!({"action": {"reason": "fine"}}), "allow"),
            (PreInference, json!({"action": {"body": "no", "status_code": 403, "reason": "policy"}}), "deny no"),
            (UserPromptSubmit, json!({"action": {"body": "no", "status_code": 403}}), "deny no"),
            (PostInference, json!({"action": {"body": "no", "status_code": 403}}), "deny no"),
            // There it passes, because the status is missing.
            (PreInference, json!({"action": {"body": "no"}}), "deny no"),
            (PreInference, json!({"action": {"status_code": 403}}), "failed MalformedJson"),
            (PreInference, json!({"action": {"body": 5}}), "failed MalformedJson"),
            (PreInference, json!({"action": "pass"}), "failed MalformedJson"),
            (PreInference, json!({}), "failed MalformedJson"),
            (
                PreInference,
                json!({"action": {"body": {"messages": messages("thanks")}}}),
                "messages be brief|mail [m]||sent|thanks",
            ),
            (PreInference, json!({"action": {"body": {"messages": []}}}), "failed UnsupportedRewrite"),
            (PreInference, json!({"action": {"body": {"choices": []}}}), "failed MalformedJson"),
            (
                PreInference,
                json!({"action": {"body": {"messages": [{"role": "user", "content": "x"}]}}}),
                "failed MalformedJson",
            ),
            (
                PostInference,
                json!({"action": {"body": {"choices": [choice("hm"), choice("it is [m]"), choice("{\"to\":\"\"}")]}}}),
                "text it is [m], call {\"to\":\"\"}",
            ),
            // Arguments that are no JSON any more cannot be put back.
            (
                PostInference,
                json!({"action": {"body": {"choices": [choice("hm"), choice("x"), choice("[masked]")]}}}),
                "failed UnsupportedRewrite",
            ),
        ],
    );
}

#[test]
fn litellm_says_none_blocked_or_intervened() {
    let none = json!({});
    hold(
        Contract::LiteLlm,
        &none,
        &[
            (PreInference, json!({"action": "NONE"}), "allow"),
            (PreInference, json!({"action": "BLOCKED", "blocked_reason": "no"}), "deny no"),
            (PreToolUse, json!({"action": "BLOCKED", "blocked_reason": "no"}), "deny no"),
            (PreInference, json!({"action": "BLOCKED"}), "deny the guard refused it"),
            (PreInference, json!({"action": "none"}), "failed MalformedJson"),
            (PreInference, json!({}), "failed MalformedJson"),
            (
                PreInference,
                json!({"action": "GUARDRAIL_INTERVENED", "texts": ["be brief", "mail [m]", "sent", "thanks"]}),
                "messages be brief|mail [m]||sent|thanks",
            ),
            (PreInference, json!({"action": "GUARDRAIL_INTERVENED", "texts": ["x"]}), "failed UnsupportedRewrite"),
            (
                PreInference,
                json!({"action": "GUARDRAIL_INTERVENED", "texts": ["", "", "", "", ""]}),
                "failed UnsupportedRewrite",
            ),
            (PreInference, json!({"action": "GUARDRAIL_INTERVENED", "texts": "x"}), "failed MalformedJson"),
            (PreInference, json!({"action": "GUARDRAIL_INTERVENED"}), "failed UnsupportedRewrite"),
            (
                PreInference,
                json!({"action": "GUARDRAIL_INTERVENED", "texts": ["", "", "", ""], "tools": []}),
                "failed UnsupportedRewrite",
            ),
            (
                PostInference,
                json!({"action": "GUARDRAIL_INTERVENED", "texts": ["hm", "it is [m]"], "stream_holdback_chars": [3, 9]}),
                "text it is [m], hold 9",
            ),
            (PostInference, json!({"action": "NONE", "stream_holdback_chars": -1}), "failed MalformedJson"),
            (
                PreToolUse,
                json!({"action": "GUARDRAIL_INTERVENED", "texts": ["x", "[z]", "[m]"]}),
                r#"input {"cc":["x","[z]"],"to":"[m]"}"#,
            ),
            (
                Event::ToolGuard,
                json!({"action": "GUARDRAIL_INTERVENED", "texts": ["", "", ""]}),
                "failed UnsupportedRewrite",
            ),
            (PostToolUse, json!({"action": "GUARDRAIL_INTERVENED", "texts": ["from [m]"]}), r#"response "from [m]""#),
            (
                UserPromptSubmit,
                json!({"action": "GUARDRAIL_INTERVENED", "texts": ["[m]"]}),
                "failed UnsupportedRewrite",
            ),
            (UserPromptSubmit, json!({"action": "GUARDRAIL_INTERVENED", "texts": ["mail a@b.c"]}), "allow"),
        ],
    );
}

#[test]
fn portkey_gives_a_verdict_and_may_give_the_exchange_anew() {
    let asked = ask(Contract::Portkey, &json!({}), PreInference).unwrap()["request"]["json"].clone();
    let with = |value: &Value, pointer: &str, new: Value| {
        let mut value = value.clone();
        *value.pointer_mut(pointer).unwrap() = new;
        value
    };
    let answered = ask(Contract::Portkey, &json!({}), PostInference).unwrap()["response"]["json"].clone();
    let request = |json: Value| json!({"verdict": true, "transformedData": {"request": {"json": json}, "response": {"json": null}}});
    let response = |json: Value| json!({"verdict": true, "transformedData": {"response": {"json": json}}});
    hold(
        Contract::Portkey,
        &json!({}),
        &[
            (PreInference, json!({"verdict": true, "data": {"any": 1}}), "allow"),
            (PreInference, json!({"verdict": false, "data": {"reason": "no"}}), "deny no"),
            (PostInference, json!({"verdict": false}), "deny the guard refused it"),
            (PreInference, json!({"verdict": "yes"}), "failed MalformedJson"),
            (PreInference, json!({"data": {}}), "failed MalformedJson"),
            (PreInference, json!({"verdict": true, "transformedData": null}), "allow"),
            (PreInference, request(asked.clone()), "allow"),
            (
                PreInference,
                request(with(&asked, "/messages/1/content", json!("[m]"))),
                "messages be brief|[m]||sent|thanks",
            ),
            (
                BeforeLlmCall,
                request(with(&asked, "/messages/1/content", json!("[m]"))),
                "messages be brief|[m]||sent|thanks",
            ),
            (PreInference, request(with(&asked, "/model", json!("cheap"))), "failed UnsupportedRewrite"),
            (PreInference, request(with(&asked, "/messages", json!("x"))), "failed MalformedJson"),
            (PreInference, response(json!({"x": 1})), "failed UnsupportedRewrite"),
            (PostInference, response(with(&answered, "/choices/0/message/content", json!("[m]"))), "text [m]"),
            (
                PostInference,
                response(with(&answered, "/choices/0/message/tool_calls/0/function/arguments", json!("{}"))),
                "call {}",
            ),
            (
                PostInference,
                response(with(&answered, "/choices/0/finish_reason", json!("x"))),
                "failed UnsupportedRewrite",
            ),
            (PostInference, request(json!({})), "failed UnsupportedRewrite"),
            (AfterLlmCall, response(json!({"choices": []})), "failed UnsupportedRewrite"),
        ],
    );
}

#[test]
fn lakera_is_refused_but_for_personal_data_that_can_be_masked() {
    let found = |detectors: &[&str], payload: Value| {
        let breakdown = detectors.iter().map(|one| json!({"detector_type": one, "detected": true}));
        json!({"flagged": true, "payload": payload, "breakdown": breakdown.collect::<Value>()})
    };
    let place = |message: u64, start: u64, end: u64| json!({"message_id": message, "start": start, "end": end, "detector_type": "pii/email"});
    let undetected = json!({"flagged": false, "breakdown": [{"detector_type": "pii", "detected": false}]});
    hold(
        Contract::Lakera,
        &json!({}),
        &[
            (PreInference, json!({"flagged": false, "payload": [], "breakdown": []}), "allow"),
            (PreInference, undetected, "allow"),
            (PreInference, found(&["prompt_attack"], json!([])), "deny flagged by prompt_attack"),
            (PreInference, json!({"flagged": true}), "deny flagged by its policy"),
            (PreInference, json!({"flagged": "no"}), "failed MalformedJson"),
            (PreInference, json!({}), "failed MalformedJson"),
            (
                PreInference,
                found(&["pii/email"], json!([place(1, 5, 10), place(1, 6, 8)])),
                "messages be brief|mail [MASKED EMAIL]||sent|thanks",
            ),
            (
                PreInference,
                found(&["pii/email", "prompt_attack"], json!([place(1, 5, 10)])),
                "deny flagged by pii/email, prompt_attack",
            ),
            (PreInference, found(&["pii"], json!([])), "deny flagged by pii"),
            (PreInference, found(&["pii"], json!([place(1, 5, 11)])), "deny flagged by pii"),
            (PreInference, found(&["pii"], json!([place(1, 5, 5)])), "deny flagged by pii"),
            (PreInference, found(&["pii"], json!([place(9, 0, 1)])), "deny flagged by pii"),
            (UserPromptSubmit, found(&["pii"], json!([place(0, 5, 10)])), "deny flagged by pii"),
            // Thinking, text and arguments follow the five messages that were asked.
            (PostInference, found(&["pii"], json!([place(6, 6, 11), place(1, 5, 10)])), "text it is [MASKED EMAIL]"),
            (PostInference, found(&["pii"], json!([place(7, 7, 12)])), r#"call {"to":"[MASKED EMAIL]"}"#),
            (PostToolUse, found(&["pii"], json!([place(0, 5, 10)])), r#"response "from [MASKED EMAIL]""#),
        ],
    );
}

#[test]
fn places_are_counted_in_characters() {
    let message = Message::new("user", "žluťoučký a@b.c kůň");
    let input = Input { messages: Some([message].into()), ..Input::default() };
    let reply = json!({"flagged": true, "breakdown": [{"detector_type": "pii", "detected": true}],
        "payload": [{"message_id": 0, "start": 10, "end": 15, "detector_type": "pii/email"}]});
    let read = agreement(Contract::Lakera, &json!({})).read(PreInference, &input, 200, &reply.to_string().into());
    let Ok(Reply::Direct(Some(output))) = read else { panic!("{read:?}") };
    assert_eq!(told(Ok(output)), "messages žluťoučký [MASKED EMAIL] kůň");
}

#[test]
fn nemo_passes_blocks_or_modifies_one_message() {
    hold(
        Contract::Nemo,
        &json!({}),
        &[
            (PreInference, json!({"status": "passed", "content": "thanks"}), "allow"),
            (
                PreInference,
                json!({"status": "blocked", "content": "I cannot.", "rail": "self check input"}),
                "deny I cannot.",
            ),
            (PreInference, json!({"status": "blocked", "content": "", "rail": "r"}), "deny blocked by the rail `r`"),
            (
                PostInference,
                json!({"status": "blocked", "content": "it is a@b.c", "rail": "r"}),
                "deny blocked by the rail `r`",
            ),
            (PreInference, json!({"status": "modified", "content": "[x]"}), "messages be brief|mail a@b.c||sent|[x]"),
            (PreInference, json!({"status": "modified"}), "failed MalformedJson"),
            (PreInference, json!({"status": "success"}), "failed MalformedJson"),
            (PreInference, json!({"content": "x"}), "failed MalformedJson"),
            (
                PostInference,
                json!({"status": "modified", "content": "hm\n\nit is [m]\n\n{}"}),
                "text it is [m], call {}",
            ),
            (PostInference, json!({"status": "modified", "content": "it is [m]"}), "failed UnsupportedRewrite"),
            (AfterLlmCall, json!({"status": "modified", "content": "x"}), "failed UnsupportedRewrite"),
            (AfterLlmCall, json!({"status": "blocked", "content": "no"}), "deny no"),
        ],
    );
}

#[test]
fn llm_guard_refuses_what_is_not_valid_unless_it_only_masked() {
    let masked = "be brief\n\nmail [m]\n\n{\"to\":\"[m]\"}\n\nsent\n\nthanks";
    let same = "be brief\n\nmail a@b.c\n\n{\"to\":\"a@b.c\"}\n\nsent\n\nthanks";
    let reply = |valid: bool, scanners: Value, text: &str| json!({"is_valid": valid, "scanners": scanners, "sanitized_prompt": text});
    let allowed = "messages be brief|mail [m]||sent|thanks";
    hold(
        Contract::LlmGuard,
        &json!({}),
        &[
            (PreInference, reply(true, json!({"Toxicity": 0.0}), same), "allow"),
            (PreInference, json!({"is_valid": true, "scanners": {}}), "allow"),
            (PreInference, reply(true, json!({"Anonymize": -1.0}), masked), allowed),
            (PreInference, reply(true, json!({}), "mail [m]"), "failed UnsupportedRewrite"),
            (PreInference, reply(false, json!({"Toxicity": 0.9, "Language": -1}), same), "deny refused by Toxicity"),
            (PreInference, reply(false, json!({"Anonymize": 1.0}), masked), "deny refused by Anonymize"),
            (PreInference, json!({"scanners": {}}), "failed MalformedJson"),
            (PreInference, json!({"is_valid": 1}), "failed MalformedJson"),
            (PostInference, json!({"is_valid": false, "scanners": {"Bias": 1.0}}), "deny refused by Bias"),
            (
                PostInference,
                json!({"is_valid": true, "sanitized_output": "hm\n\nit is [m]\n\n{}"}),
                "text it is [m], call {}",
            ),
        ],
    );
    hold(
        Contract::LlmGuard,
        &json!({"mask": ["Anonymize"]}),
        &[
            (PreInference, reply(false, json!({"Anonymize": 1.0, "Toxicity": 0.0}), masked), allowed),
            (PreInference, reply(false, json!({"Anonymize": 1.0}), same), "deny refused by Anonymize"),
            (
                PreInference,
                reply(false, json!({"Anonymize": 1.0, "Toxicity": 0.1}), masked),
                "deny refused by Anonymize, Toxicity",
            ),
            (PreInference, reply(false, json!({}), masked), "deny the guard refused it"),
        ],
    );
}

#[test]
fn openai_moderation_denies_what_is_flagged_or_over_a_threshold() {
    let result = |flagged: bool, violence: f64| json!({"flagged": flagged, "categories": {"violence": flagged, "hate": false}, "category_scores": {"violence": violence}});
    let all = |last: Value| json!({"id": "modr-1", "results": [result(false, 0.0), result(false, 0.0), last]});
    hold(
        Contract::OpenAiModeration,
        &json!({}),
        &[
            (PostInference, all(result(false, 0.3)), "allow"),
            (PostInference, all(result(true, 0.9)), "deny flagged as violence"),
            (PostInference, all(json!({"flagged": true})), "deny the guard refused it"),
            (PostInference, all(json!({"flagged": null})), "failed MalformedJson"),
            (PostInference, all(json!(1)), "failed MalformedJson"),
            (PostInference, json!({"results": [result(false, 0.0)]}), "failed MalformedJson"),
            (PostInference, json!({"error": {"message": "x"}}), "failed MalformedJson"),
        ],
    );
    hold(
        Contract::OpenAiModeration,
        &json!({"thresholds": {"violence": 0.25}}),
        &[
            (PostInference, all(result(false, 0.2)), "allow"),
            (PostInference, all(result(false, 0.25)), "deny flagged as violence"),
            (PostInference, all(json!({"flagged": false})), "failed MalformedJson"),
        ],
    );
}

#[test]
fn anthropic_allows_or_denies_and_a_denial_is_never_lost_over_its_form() {
    let long = "x".repeat(501);
    hold(
        Contract::AnthropicInference,
        &json!({}),
        &[
            (PreInference, json!({"action": "allow", "deny_reason": "ignored", "more": 1}), "allow"),
            (PreInference, json!({"action": "deny", "deny_reason": "no"}), "deny no"),
            (PreInference, json!({"action": "deny"}), "deny the guard refused it"),
            (
                PreInference,
                json!({"action": "deny", "deny_reason": 5, "reference_id": "a b"}),
                "deny the guard refused it",
            ),
            (PreInference, json!({"action": "deny", "deny_reason": long}), &format!("deny {}", "x".repeat(500))),
            (PreInference, json!({"action": "block"}), "failed MalformedJson"),
            (PreInference, json!({"action": true}), "failed MalformedJson"),
            (PreInference, json!({}), "failed MalformedJson"),
        ],
    );
    let reply = json!({"action": "deny", "reference_id": "scan_01"});
    let output = read(Contract::AnthropicInference, &json!({}), PreInference, &reply).unwrap();
    assert_eq!(output.hook_specific_output.unwrap().metadata.unwrap()["reference_id"], "scan_01");
}
