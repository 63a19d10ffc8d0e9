use super::*;
use crate::builtins::redaction::json;
use gatehook_events::{Message, Output, Permission};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A token that the scanner knows, put together so that no scanner finds it here.
fn secret() -> String {
    ["ghp", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"].join("_")
}

fn said(event: Event, input: Value) -> Option<Output> {
    let input: Input = serde_json::from_value(input).unwrap();
    RedactSecrets.judge(event, &input, &Others::default()).unwrap()
}

#[test]
fn only_the_arguments_with_secrets_in_them_are_given_back() {
    let input =
        json!({"tool_name": "shell", "tool_input": {"command": format!("curl -H {}", secret()), "timeout": 30}});
    let output = said(Event::ToolInputTransform, input).unwrap();
    let patch = output.hook_specific_output.unwrap().updated_input.unwrap();
    assert_eq!(Value::Object(patch), json!({"command": "curl -H [REDACTED]"}));
    assert_eq!(output.system_message.as_deref(), Some("secrets were redacted in the arguments of shell"));
}

#[test]
fn nested_arguments_keep_everything_else() {
    let input =
        json!({"tool_input": {"tags": ["prod", secret(), 42], "headers": {secret(): true, "Accept": "text/html"}}});
    let output = said(Event::PreToolUse, input).unwrap();
    let patch = output.hook_specific_output.unwrap().updated_input.unwrap();
    let want = json!({"tags": ["prod", "[REDACTED]", 42], "headers": {"[REDACTED]": true, "Accept": "text/html"}});
    assert_eq!(Value::Object(patch), want);
}

#[test]
fn what_has_no_secret_is_not_rewritten() {
    assert_eq!(said(Event::ToolInputTransform, json!({"tool_input": {"command": "ls -la"}})), None);
    assert_eq!(said(Event::PreInference, json!({"messages": [{"role": "user", "content": "hello"}]})), None);
    assert_eq!(said(Event::ToolResponseTransform, json!({"tool_response": {"a": ["b"]}})), None);
    assert_eq!(said(Event::PostInference, json!({"output_text": "hello"})), None);
    assert_eq!(said(Event::Stop, json!({"stop_response": secret()})), None);
}

#[test]
fn messages_are_redacted_wherever_text_stands() {
    let input = json!({"messages": [
        {"role": "user", "content": format!("here: {}", secret())},
        {"role": "assistant", "content": "clean reply"},
        {"role": "assistant", "thinking": secret(), "tool_calls": [
            {"type": "function", "function": {"name": "f", "arguments": json!({"token": secret()}).to_string()}},
        ]},
        {"role": "user", "multi_content": [{"type": "text", "text": secret()}]},
    ]});
    let output = said(Event::PreInference, input.clone()).unwrap();
    assert_eq!(output.permission, Some(Permission::Modify));
    let text = serde_json::to_string(&output.messages).unwrap();
    assert!(!text.contains(&secret()), "{text}");
    assert_eq!(serde_json::to_value(&output.messages.unwrap()[1]).unwrap(), input["messages"][1]);
}

#[test]
fn unchanged_messages_share_their_text_with_the_input() {
    let messages = [Message::new("user", &secret()), Message::new("user", "clean")];
    let input = Input { messages: Some(messages.into()), ..Input::default() };
    let output = RedactSecrets.judge(Event::PreInference, &input, &Others::default()).unwrap().unwrap();
    let (old, new) = (&input.messages.unwrap()[1], &output.messages.unwrap()[1]);
    assert!(Arc::ptr_eq(old.content.as_ref().unwrap(), new.content.as_ref().unwrap()));
}

#[test]
fn a_tool_response_is_redacted_at_any_depth() {
    let output = said(Event::ToolResponseTransform, json!({"tool_response": {"rows": [[secret()], 1]}})).unwrap();
    let response = output.hook_specific_output.unwrap().updated_tool_response;
    assert_eq!(response, Some(json!({"rows": [["[REDACTED]"], 1]})));
}

#[test]
fn only_the_changed_parts_of_an_answer_are_given_back() {
    let output = said(Event::PostInference, json!({"output_text": secret(), "output_thinking": "clean"})).unwrap();
    assert_eq!(output.output_text.as_deref(), Some("[REDACTED]"));
    assert_eq!((output.output_thinking, output.tool_calls), (None, None));
}

#[test]
fn arguments_that_are_json_text_keep_every_other_byte() {
    let text = format!(r#"{{ "n": 12345678901234567890123, "a\"b": "x\u0041", "t": "\u0067{}" }}"#, &secret()[1..]);
    let want = r#"{ "n": 12345678901234567890123, "a\"b": "x\u0041", "t": "[REDACTED]" }"#;
    assert_eq!(json::text(&text, &mut Redaction::new(&Secrets, &Others::default())).as_deref(), Some(want));
}

#[test]
fn arguments_that_are_no_json_are_redacted_as_text() {
    assert_eq!(
        json::text(&format!("{{\"t\": {}", secret()), &mut Redaction::new(&Secrets, &Others::default())).as_deref(),
        Some("{\"t\": [REDACTED]")
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-z\"\\\\\n\u{e9}{}:,]{0,8}", Just(secret())];
    let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), text.clone().prop_map(Value::String)];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn redacted_json_text_is_json_without_secrets(value in any_json()) {
        let text = value.to_string();
        match json::text(&text, &mut Redaction::new(&Secrets, &Others::default())) {
            None => prop_assert!(!text.contains(&secret())),
            Some(redacted) => {
                prop_assert!(!redacted.contains(&secret()), "{redacted}");
                prop_assert!(serde_json::from_str::<Value>(&redacted).is_ok(), "{redacted}");
            }
        }
    }

    #[test]
    fn a_redacted_value_has_no_secret_and_is_redacted_no_further(value in any_json()) {
        let redacted = json::value(None, None, &value, &mut Redaction::new(&Secrets, &Others::default())).unwrap_or(value);
        prop_assert!(!redacted.to_string().contains(&secret()));
        prop_assert_eq!(json::value(None, None, &redacted, &mut Redaction::new(&Secrets, &Others::default())), None);
    }
}

#[test]
fn a_value_may_be_a_secret_by_its_name() {
    for (given, want) in [
        (json!({"password": "hunter2hunter2"}), Some(json!({"password": "[REDACTED]"}))),
        (json!({"env": [{"api_key": "Xk9vLq2mRt7wZp4n"}]}), Some(json!({"env": [{"api_key": "[REDACTED]"}]}))),
        (json!({"path": "/home/user/project/src/main.rs"}), None),
        (json!({"token": "read_file"}), None),
    ] {
        assert_eq!(json::value(None, None, &given, &mut Redaction::new(&Secrets, &Others::default())), want);
        assert_eq!(
            json::text(&given.to_string(), &mut Redaction::new(&Secrets, &Others::default())),
            want.map(|want| want.to_string())
        );
    }
}
