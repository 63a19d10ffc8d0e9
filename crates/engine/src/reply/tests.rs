use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Block, Permission, PermissionDecision};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn native(text: &str) -> Result<Output, FailureKind> {
    parse(text.as_bytes(), Profile::Native, false).map_err(|fault| fault.kind)
}

#[test]
fn every_field_is_read() {
    let reply = json!({
        "continue": false, "stop_reason": "s", "suppress_output": true, "system_message": "m", "decision": "block",
        "reason": "r", "user_message": "u", "agent_message": "a", "permission": "modify",
        "messages": [{"role": "user", "content": "hi", "cache_control": {"type": "ephemeral"}}],
        "output_text": "", "output_thinking": "t",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        "hook_specific_output": {
            "hook_event_name": "stop", "permission_decision": "ask", "permission_decision_reason": "why",
            "updated_input": {"a": {"b": null}}, "additional_context": "c", "instruction_context": [{"key": "k"}],
            "summary": "s", "updated_messages": [{"role": "user"}], "updated_tool_response": {"x": [1]},
            "metadata": {"k": "v"},
        },
    });
    let output = native(&reply.to_string()).unwrap();
    assert_eq!(serde_json::to_value(output).unwrap(), reply);
}

#[test]
fn null_and_nothing_are_the_same() {
    let text =
        r#"{"continue":null,"decision":null,"hook_specific_output":null,"messages":null,"suppress_output":null}"#;
    assert_eq!(native(text), Ok(Output::default()));
    let specific = Output { hook_specific_output: Some(HookSpecificOutput::default()), ..Output::default() };
    assert_eq!(native(r#"{"hook_specific_output":{"permission_decision":null,"metadata":null}}"#), Ok(specific));
    assert_eq!(native(r#"{"decision":"","permission":""}"#), Ok(Output::default()));
}

#[test]
fn each_fault_has_its_kind() {
    use FailureKind::{
        DuplicateKey, InvalidDecision, InvalidPermissionDecision, MalformedJson, TrailingData, UnknownField,
    };
    for (text, strict, kind) in [
        ("{", false, MalformedJson),
        ("{not json", false, MalformedJson),
        (r#"{"continue":"no"}"#, false, MalformedJson),
        (r#"{"hook_specific_output":[]}"#, false, MalformedJson),
        (r#"{"hook_specific_output":{"metadata":{"a":1}}}"#, false, MalformedJson),
        (r#"{"hook_specific_output":{"updated_input":[]}}"#, false, MalformedJson),
        ("{} {}", false, TrailingData),
        ("{} done", false, TrailingData),
        (r#"{"reason":"a","reason":"b"}"#, false, DuplicateKey),
        (r#"{"reason":"a","\u0072eason":"b"}"#, false, DuplicateKey),
        (r#"{"x":1,"x":1}"#, false, DuplicateKey),
        (r#"{"hook_specific_output":{"updated_input":{"a":{"b":1,"b":2}}}}"#, false, DuplicateKey),
        (r#"{"x":{"b":1,"b":2}}"#, false, DuplicateKey),
        (r#"{"decision":"allow"}"#, false, InvalidDecision),
        (r#"{"permission":"Deny"}"#, false, InvalidPermissionDecision),
        (r#"{"hook_specific_output":{"permission_decision":"alow"}}"#, false, InvalidPermissionDecision),
        (r#"{"Reason":"x"}"#, true, UnknownField),
        (r#"{"hook_specific_output":{"updated_inpu":{}}}"#, true, UnknownField),
        (r#"{"hook_specific_output":{"instruction_context":[{"kee":"k"}]}}"#, true, UnknownField),
    ] {
        let fault = parse(text.as_bytes(), Profile::Native, strict).unwrap_err();
        assert_eq!(fault.kind, kind, "{text}: {fault}");
    }
}

#[test]
fn of_several_faults_the_reference_s_first_is_told() {
    use FailureKind::{InvalidDecision, MalformedJson, TrailingData, UnknownField};
    for (text, kind) in [
        (r#"{"nope":1,"decision":"blok""#, MalformedJson),
        (r#"{"reason":5,"nope":1}"#, MalformedJson),
        (r#"{"nope":1,"reason":5}"#, UnknownField),
        (r#"{"nope":1} x"#, UnknownField),
        (r#"{"decision":"blok"} x"#, TrailingData),
        (r#"{"hook_specific_output":{"permission_decision":"alow"},"decision":"blok"}"#, InvalidDecision),
    ] {
        let fault = parse(text.as_bytes(), Profile::DockerAgent, true).unwrap_err();
        assert_eq!(fault.kind, kind, "{text}: {fault}");
    }
}

#[test]
fn strict_output_looks_into_messages() {
    let known = r#"{"hook_specific_output":{"updated_messages":[{"content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":""}}]}]}}"#;
    assert!(parse(known.as_bytes(), Profile::DockerAgent, true).is_ok());
    let unknown = known.replace(r#""name":"f""#, r#""name":"f","nope":1"#);
    assert_eq!(parse(unknown.as_bytes(), Profile::DockerAgent, true).unwrap_err().kind, FailureKind::UnknownField);
    assert!(parse(unknown.as_bytes(), Profile::DockerAgent, false).is_ok());
}

#[test]
fn a_message_without_a_role_is_docker_agent_s_alone() {
    let text = br#"{"hook_specific_output":{"updated_messages":[{"content":"c"}]}}"#;
    let output = parse(text, Profile::DockerAgent, true).unwrap().hook_specific_output.unwrap();
    assert_eq!(output.updated_messages, Some(vec![gatehook_events::Message::new("", "c")]));
    assert_eq!(parse(text, Profile::Native, false).unwrap_err().kind, FailureKind::MalformedJson);
}

#[test]
fn keys_are_matched_exactly() {
    assert_eq!(native(r#"{"Decision":"block","DECISION":"block","deciſion":"block"}"#), Ok(Output::default()));
}

#[test]
fn docker_agent_does_not_know_native_fields() {
    let text = br#"{"permission":"deny","user_message":"u"}"#;
    assert_eq!(parse(text, Profile::DockerAgent, false), Ok(Output::default()));
    assert_eq!(parse(text, Profile::DockerAgent, true).unwrap_err().kind, FailureKind::UnknownField);
}

#[test]
fn v158_takes_no_notice_of_unknown_words() {
    let text = br#"{"decision":"allow","hook_specific_output":{"permission_decision":"alow"}}"#;
    let output = parse(text, Profile::DockerAgentV158, false).unwrap();
    assert_eq!((output.decision, output.hook_specific_output.unwrap().permission_decision), (None, None));
}

#[test]
fn a_fault_does_not_repeat_what_the_hook_wrote() {
    let fault = parse(br#"{"continue":"hunter2"}"#, Profile::Native, false).unwrap_err();
    assert_eq!(fault.message, "`continue` of its reply is of the wrong type");
}

/// Replies of every shape, and what is near to them.
fn any_reply() -> impl Strategy<Value = Value> {
    let word = prop_oneof![Just("block"), Just("allow"), Just("deny"), Just("modify"), Just(""), Just("text")];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word.prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"role": "user", "content": "c"}])),
        Just(json!({"a": "b"})),
    ];
    let key = prop_oneof![
        Just("continue"),
        Just("decision"),
        Just("reason"),
        Just("permission"),
        Just("messages"),
        Just("output_text"),
        Just("permission_decision"),
        Just("updated_input"),
        Just("metadata"),
        Just("unknown"),
    ];
    let flat = prop::collection::btree_map(key.clone(), leaf.clone(), 0..4)
        .prop_map(|map| Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()));
    (prop::collection::btree_map(key, leaf, 0..6), prop::option::of(flat)).prop_map(|(map, specific)| {
        let mut map: serde_json::Map<_, _> = map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        map.extend(specific.map(|specific| ("hook_specific_output".to_owned(), specific)));
        Value::Object(map)
    })
}

/// A reply as serde alone reads it, with empty words taken for none.
fn by_serde(reply: &Value) -> Option<Output> {
    let mut reply = reply.clone();
    let empty = |value: Option<&Value>| value.is_some_and(|value| value == "");
    let top = reply.as_object_mut()?;
    for word in ["decision", "permission"] {
        if empty(top.get(word)) {
            top.remove(word);
        }
    }
    if let Some(specific) = top.get_mut("hook_specific_output").and_then(Value::as_object_mut)
        && empty(specific.get("permission_decision"))
    {
        specific.remove("permission_decision");
    }
    serde_json::from_value(reply).ok()
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(text in prop::collection::vec(any::<u8>(), 0..64), strict in any::<bool>()) {
        for profile in [Profile::Native, Profile::DockerAgent, Profile::DockerAgentV158] {
            let _ = parse(&text, profile, strict);
        }
    }

    #[test]
    fn it_reads_what_serde_reads(reply in any_reply()) {
        let read = parse(reply.to_string().as_bytes(), Profile::Native, false);
        prop_assert_eq!(read.clone().ok(), by_serde(&reply), "{} {:?}", reply, read);
    }
}

#[test]
fn words_are_read() {
    let output =
        native(r#"{"decision":"block","permission":"ask","hook_specific_output":{"permission_decision":"deny"}}"#);
    let output = output.unwrap();
    assert_eq!((output.decision, output.permission), (Some(Block::Block), Some(Permission::Ask)));
    assert_eq!(output.hook_specific_output.unwrap().permission_decision, Some(PermissionDecision::Deny));
}
