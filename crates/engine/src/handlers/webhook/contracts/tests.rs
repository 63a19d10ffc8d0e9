use std::sync::Arc;

use gatehook_events::{Image, Message, ToolCall};
use proptest::prelude::*;
use serde_json::json;

use super::*;

mod mapping;
mod questions;
mod replies;
mod served;

fn call(arguments: &str) -> ToolCall {
    let function = gatehook_events::FunctionCall { name: "send".into(), arguments: arguments.into() };
    ToolCall { id: Some("c1".into()), kind: "function".into(), function, ..ToolCall::default() }
}

/// A conversation with everything that a text can stand in.
fn conversation() -> Vec<Message> {
    vec![
        Message::new("system", "be brief"),
        Message::new("user", "mail a@b.c"),
        Message { tool_calls: Some(vec![call(r#"{"to":"a@b.c"}"#)]), ..Message::new("assistant", "") },
        Message { tool_call_id: Some("c1".into()), ..Message::new("tool", "sent") },
        Message::new("user", "thanks"),
    ]
}

/// One input for every event, with the fields that each has.
fn input(event: Event) -> Input {
    let stage = Stage::of(event);
    let is = |wanted: Stage| stage == wanted;
    let messages = (is(Stage::Prompt) && event != Event::UserPromptSubmit) || is(Stage::Answer);
    Input {
        request_id: Some("req-1".into()),
        session_id: Some("s-1".into()),
        model_id: Some("m".into()),
        messages: messages.then(|| conversation().into()),
        prompt: (event == Event::UserPromptSubmit).then(|| "mail a@b.c".into()),
        output_text: (event == Event::PostInference).then(|| "it is a@b.c".into()),
        output_thinking: (event == Event::PostInference).then(|| "hm".into()),
        tool_calls: (event == Event::PostInference).then(|| [call(r#"{"to":"a@b.c"}"#)].into()),
        stop_response: (event == Event::AfterLlmCall).then(|| "it is a@b.c".into()),
        tool_name: Some("send".into()).filter(|_| is(Stage::ToolCall) || is(Stage::ToolResult)),
        tool_input: is(Stage::ToolCall)
            .then(|| json!({"to": "a@b.c", "n": 1, "cc": ["x", "y/z"]}).as_object().unwrap().clone().into()),
        tool_response: is(Stage::ToolResult).then(|| Arc::new(json!("from a@b.c"))),
        ..Input::default()
    }
}

fn agreement(contract: Contract, parameters: &Value) -> Agreement {
    let parameters = parameters.as_object().cloned().unwrap_or_default();
    let mapping = (contract == Contract::Mapped).then(|| mapping::mapping(&json!("{{ .text }}"), &[]));
    let definition = WebhookDefinition { parameters, mapping, ..WebhookDefinition::new("http://h", contract) };
    Agreement::of(&definition).unwrap()
}

fn ask(contract: Contract, parameters: &Value, event: Event) -> Option<Value> {
    let agreement = agreement(contract, parameters);
    let body = agreement.question(event, &input(event), &Payload::default(), "id-1").unwrap()?;
    Some(serde_json::from_slice(&body).unwrap())
}

fn read(contract: Contract, parameters: &Value, event: Event, reply: &Value) -> Result<Output, FailureKind> {
    let body = Bytes::from(reply.to_string());
    match agreement(contract, parameters).read(event, &input(event), 200, &body) {
        Ok(Reply::Direct(output)) => Ok(output.unwrap_or_default()),
        Ok(_) => panic!("{reply}"),
        Err(error) => Err(error.kind),
    }
}

/// What an output comes to, in a word or two.
fn told(output: Result<Output, FailureKind>) -> String {
    let output = match output {
        Ok(output) => output,
        Err(kind) => return format!("failed {kind:?}"),
    };
    let specific = output.hook_specific_output.clone().unwrap_or_default();
    let said = output.user_message.as_deref().or(output.reason.as_deref()).unwrap_or_default();
    if output.permission == Some(Permission::Deny) || output.is_blocked() {
        return format!("deny {said}");
    }
    if output.permission == Some(Permission::Ask) || specific.permission_decision.is_some() {
        return format!("ask {}", specific.permission_decision_reason.as_deref().unwrap_or(said));
    }
    let contents = |message: &Message| message.content.as_deref().unwrap_or_default().to_owned();
    if let Some(messages) = output.messages {
        return format!("messages {}", messages.iter().map(contents).collect::<Vec<_>>().join("|"));
    }
    let mut parts = Vec::new();
    parts.extend(output.output_text.map(|text| format!("text {text}")));
    parts.extend(output.output_thinking.map(|text| format!("thinking {text}")));
    parts.extend(output.tool_calls.map(|calls| format!("call {}", calls[0].function.arguments)));
    parts.extend(specific.updated_input.map(|input| format!("input {}", Value::Object(input))));
    parts.extend(specific.updated_tool_response.map(|response| format!("response {response}")));
    parts.extend(output.holdback_chars.map(|chars| format!("hold {chars}")));
    if parts.is_empty() { "allow".to_owned() } else { parts.join(", ") }
}

/// Holds each reply against what it must come to.
fn hold(contract: Contract, parameters: &Value, cases: &[(Event, Value, &str)]) {
    for (event, reply, want) in cases {
        assert_eq!(told(read(contract, parameters, *event, reply)), *want, "{contract:?} {event:?} {reply}");
    }
}

use Event::{AfterLlmCall, BeforeLlmCall, PostInference, PostToolUse, PreInference, PreToolUse, UserPromptSubmit};

#[test]
fn only_the_statuses_of_a_contract_carry_a_verdict() {
    for terms in &CONTRACTS {
        let agreement = agreement(terms.contract, &json!({}));
        for (status, want) in [(200, None), (302, Some(FailureKind::Redirected)), (429, Some(FailureKind::BadStatus))] {
            assert_eq!(agreement.check(status).err().map(|error| error.kind), want, "{:?} {status}", terms.contract);
        }
        let is_strict = terms.contract == Contract::AnthropicInference;
        assert_eq!(agreement.check(201).is_err(), is_strict, "{:?}", terms.contract);
    }
}

#[test]
fn each_contract_has_a_row_and_a_name() {
    for (name, contract) in Contract::ALL {
        let terms = terms(contract);
        assert_eq!((terms.contract, contract.name()), (contract, name));
        let texts = [terms.request, terms.reply, terms.source];
        assert!(texts.iter().all(|text| !text.is_empty()), "{name}");
        assert!(terms.source.starts_with("https://") || terms.source.contains(".md"), "{name}");
    }
}

/// JSON in which the words of the contracts appear.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "action",
        "body",
        "messages",
        "choices",
        "message",
        "role",
        "content",
        "status_code",
        "reason",
        "NONE",
        "GUARDRAIL_INTERVENED",
        "texts",
        "verdict",
        "transformedData",
        "request",
        "response",
        "json",
        "flagged",
        "payload",
        "breakdown",
        "detector_type",
        "detected",
        "pii",
        "message_id",
        "start",
        "end",
        "status",
        "modified",
        "passed",
        "blocked",
        "rail",
        "is_valid",
        "scanners",
        "sanitized_prompt",
        "sanitized_output",
        "results",
        "categories",
        "category_scores",
        "allow",
        "deny",
        "deny_reason",
        "reference_id",
        "stream_holdback_chars",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_reply_gives_an_output_or_a_failure(reply in any_json(), status in 100_u16..600) {
        for terms in &CONTRACTS {
            let agreement = agreement(terms.contract, &json!({}));
            for event in Event::all().filter(|event| terms.knows(*event)) {
                let read = agreement.read(event, &input(event), status, &reply.to_string().into());
                prop_assert!(read.is_err() || (200..300).contains(&status), "{:?} {status}", terms.contract);
            }
        }
    }

    #[test]
    fn any_bytes_give_an_output_or_a_failure(body: Vec<u8>) {
        for terms in &CONTRACTS {
            let read = agreement(terms.contract, &json!({})).read(PreInference, &input(PreInference), 200, &body.clone().into());
            let is_json = serde_json::from_slice::<Value>(&body).is_ok();
            prop_assert!(is_json || read.is_err() || terms.contract == Contract::Native, "{:?}", terms.contract);
        }
    }

    /// Texts that are shown as one come back each in its place, whatever blank lines they hold.
    #[test]
    fn texts_shown_as_one_come_back_as_they_were_or_not_at_all(parts in prop::collection::vec("[a\n]{1,6}", 1..5)) {
        let messages: Vec<Message> = parts.iter().map(|part| Message::new("user", part)).collect();
        let input = Input { messages: Some(messages.into()), ..Input::default() };
        let texts = Texts::of(PreInference, Stage::Prompt, &input);
        if let Ok(back) = texts.parted(&texts.joined()) {
            prop_assert_eq!(back, parts);
        }
    }
}
