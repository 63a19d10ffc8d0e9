use super::*;

#[test]
fn each_contract_asks_in_its_own_words() {
    let none = json!({});
    let asked = ask(Contract::AgentGateway, &none, PreInference).unwrap();
    assert_eq!(asked["body"]["messages"][1], json!({"role": "user", "content": "mail a@b.c"}));
    assert_eq!(asked["body"]["messages"].as_array().unwrap().len(), 5);
    let asked = ask(Contract::AgentGateway, &none, PostInference).unwrap();
    assert_eq!(asked["body"]["choices"][1], json!({"message": {"role": "assistant", "content": "it is a@b.c"}}));

    let asked = ask(Contract::LiteLlm, &none, PreInference).unwrap();
    assert_eq!(asked["texts"], json!(["be brief", "mail a@b.c", "sent", "thanks"]));
    assert_eq!((&asked["input_type"], &asked["litellm_call_id"]), (&json!("request"), &json!("req-1")));
    assert_eq!(asked["structured_messages"][2]["tool_calls"][0]["function"]["name"], "send");
    let asked = ask(Contract::LiteLlm, &none, PostInference).unwrap();
    assert_eq!((&asked["texts"], &asked["input_type"]), (&json!(["hm", "it is a@b.c"]), &json!("response")));
    assert_eq!(asked["tool_calls"][0]["id"], "c1");
    let asked = ask(Contract::LiteLlm, &none, PreToolUse).unwrap();
    assert_eq!(
        (&asked["texts"], &asked["tools"][0]["function"]["name"]),
        (&json!(["x", "y/z", "a@b.c"]), &json!("send"))
    );
    let asked = ask(Contract::LiteLlm, &none, PostToolUse).unwrap();
    assert_eq!((&asked["texts"], &asked["input_type"]), (&json!(["from a@b.c"]), &json!("response")));

    let asked = ask(Contract::Portkey, &json!({"metadata": {"team": "blue"}}), PostInference).unwrap();
    assert_eq!(asked["eventType"], "afterRequestHook");
    assert_eq!((&asked["request"]["text"], &asked["metadata"]["team"]), (&json!("thanks"), &json!("blue")));
    assert_eq!(asked["response"]["json"]["choices"][0]["message"]["content"], "it is a@b.c");

    let asked = ask(Contract::Lakera, &json!({"project_id": "p"}), PreInference).unwrap();
    assert_eq!(
        (&asked["project_id"], &asked["payload"], &asked["breakdown"]),
        (&json!("p"), &json!(true), &json!(true))
    );
    assert_eq!(asked["messages"][3], json!({"role": "tool", "content": "sent"}));

    let asked = ask(Contract::Nemo, &json!({"config_id": "c", "model": "x"}), PostInference).unwrap();
    assert_eq!(asked["guardrails"], json!({"config_id": "c", "rail_types": ["output"]}));
    assert_eq!((&asked["model"], asked["messages"].as_array().unwrap().len()), (&json!("x"), 6));
    assert_eq!(asked["messages"][3], json!({"role": "tool", "content": "sent", "tool_call_id": "c1"}));
    assert_eq!(asked["messages"][5]["content"], "hm\n\nit is a@b.c\n\n{\"to\":\"a@b.c\"}");

    let asked = ask(Contract::LlmGuard, &json!({"scanners_suppress": ["Bias"]}), AfterLlmCall).unwrap();
    assert_eq!((&asked["output"], &asked["scanners_suppress"]), (&json!("it is a@b.c"), &json!(["Bias"])));
    assert!(asked["prompt"].as_str().unwrap().ends_with("sent\n\nthanks"));

    let asked = ask(Contract::OpenAiModeration, &none, UserPromptSubmit).unwrap();
    assert_eq!(asked, json!({"model": "omni-moderation-latest", "input": ["mail a@b.c"]}));
}

#[test]
fn anthropic_is_shown_what_the_user_sees() {
    let mut messages = conversation();
    let image = Image { sha256: "s".into(), media_type: "image/png".into(), bytes: 5, data: None };
    messages[4].images = Some(vec![image]);
    messages[4].thinking = Some("hidden".into());
    let input = Input {
        messages: Some(messages.into()),
        user: Some("ann@example.com".into()),
        model_id: Some("m".into()),
        tools: Some(json!([{"hidden": true}]).into()),
        ..Input::default()
    };
    let agreement = agreement(Contract::AnthropicInference, &json!({"tenant_id": "t"}));
    let body = agreement.question(PreInference, &input, &Payload::default(), "id-1").unwrap().unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        json!({
            "type": "prompt", "request_id": "id-1", "tenant_id": "t", "session_id": null, "model": "m", "metadata": {},
            "actor": {"type": "user", "id": "ann@example.com", "email_address": "ann@example.com"},
            "source": {"application": "gatehook"},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "mail a@b.c"}]},
                {"role": "assistant", "content":
                    [{"type": "tool_use", "id": "c1", "tool_name": "send", "input": {"to": "a@b.c"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "tool_name": "send", "content": "sent", "is_error": false},
                    {"type": "text", "text": "thanks"},
                    {"type": "attachment", "file_name": "", "media_type": "image/png", "size_bytes": 5},
                ]},
            ],
        })
    );
}

#[test]
fn legacy_fields_are_texts_too_and_cannot_be_changed() {
    let input = Input { suffix: Some("tail".into()), template: Some("head".into()), ..Input::default() };
    let agreement = agreement(Contract::LiteLlm, &json!({}));
    let body = agreement.question(PreInference, &input, &Payload::default(), "").unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["texts"], json!(["head", "tail"]));
    let reply = json!({"action": "GUARDRAIL_INTERVENED", "texts": ["head", "[x]"]}).to_string().into();
    let error = agreement.read(PreInference, &input, 200, &reply).unwrap_err();
    assert_eq!(error.kind, FailureKind::UnsupportedRewrite);
}

#[test]
fn a_document_is_a_text_too() {
    let document = json!({
        "type": "document",
        "title": "plan.txt",
        "source": {"type": "text", "media_type": "text/plain", "data": "the launch codes"},
        "cache_control": {"type": "ephemeral"},
    });
    let extra = json!({"part": "document", "value": document, "signature": "x"}).as_object().unwrap().clone();
    let message = Message { extra, content: None, ..Message::new("user", "") };
    let input = Input { messages: Some([message].into()), ..Input::default() };
    let ask = |contract| {
        let body = agreement(contract, &json!({})).question(PreInference, &input, &Payload::default(), "id").unwrap();
        serde_json::from_slice::<Value>(&body.unwrap()).unwrap()
    };
    assert_eq!(ask(Contract::OpenAiModeration)["input"], json!(["the launch codes", "plan.txt"]));
    assert_eq!(ask(Contract::LiteLlm)["texts"], json!(["the launch codes", "plan.txt"]));
    assert_eq!(
        ask(Contract::AnthropicInference)["messages"][0]["content"],
        json!([{"type": "attachment", "file_name": "plan.txt", "media_type": "text/plain", "size_bytes": 25,
                "text": "the launch codes\nplan.txt"}])
    );
    let reply = json!({"action": "GUARDRAIL_INTERVENED", "texts": ["[x]", "plan.txt"]}).to_string().into();
    let error = agreement(Contract::LiteLlm, &json!({})).read(PreInference, &input, 200, &reply).unwrap_err();
    assert_eq!(error.kind, FailureKind::UnsupportedRewrite);
}

#[test]
fn an_event_without_text_is_not_shown_to_who_judges_text_alone() {
    let judges = [Contract::Lakera, Contract::Nemo, Contract::LlmGuard, Contract::OpenAiModeration];
    for contract in Contract::ALL.map(|(_, contract)| contract) {
        let input = Input { messages: Some([Message::new("user", "")].into()), ..Input::default() };
        let asked = agreement(contract, &json!({})).question(PreInference, &input, &Payload::default(), "id").unwrap();
        assert_eq!(asked.is_none(), judges.contains(&contract), "{contract:?}");
    }
}

#[test]
fn an_event_that_a_contract_does_not_know_is_not_sent() {
    for terms in &CONTRACTS {
        for event in Event::all().filter(|event| !terms.knows(*event)) {
            let asked = agreement(terms.contract, &json!({})).question(event, &input(event), &Payload::default(), "id");
            assert_eq!(asked.unwrap_err().kind, FailureKind::HandlerError, "{:?} {event:?}", terms.contract);
        }
    }
}
