use super::*;

fn said_on(event: Event, stdout: &str, exit_code: i32) -> Said {
    Ollm.read_reply(event, &Printed { stdout: stdout.as_bytes(), stderr: "", exit_code })
}

fn output(event: Event, stdout: &str) -> Output {
    match said_on(event, stdout, 0) {
        Said::Output(output) => *output,
        said => panic!("{stdout}: {said:?}"),
    }
}

#[test]
fn a_yes_passes_with_its_message() {
    let reply = r#"{"allow": true, "message": "Operation approved", "metadata": {"checked": true, "by": "me"}}"#;
    let output = output(Event::PreToolUse, reply);
    assert_eq!((output.is_blocked(), output.system_message.as_deref()), (false, Some("Operation approved")));
    let specific = output.hook_specific_output.unwrap();
    assert_eq!(specific.permission_decision, None);
    let metadata = specific.metadata.unwrap();
    assert_eq!((metadata["checked"].as_str(), metadata["by"].as_str()), ("true", "me"));
}

#[test]
fn a_no_blocks_with_its_message() {
    let output = output(Event::PreToolUse, "\u{feff} {\"allow\": false, \"message\": \"Dangerous\"}\n");
    assert_eq!((output.is_blocked(), output.reason.as_deref()), (true, Some("Dangerous")));
}

#[test]
fn a_yes_on_an_approval_request_is_consent() {
    let decision = |event, reply| output(event, reply).hook_specific_output.unwrap().permission_decision;
    let yes = r#"{"allow": true}"#;
    assert_eq!(decision(Event::PermissionRequest, yes), Some(PermissionDecision::Allow));
    assert_eq!(decision(Event::PermissionRequest, r#"{"allow": false}"#), None);
    assert_eq!(decision(Event::PreToolUse, yes), None);
}

#[test]
fn the_form_that_its_program_reads_is_understood() {
    for (reply, blocked, message) in [
        (r#"{"continue": true, "systemMessage": "fine"}"#, false, Some("fine")),
        (r#"{"continue": false, "systemMessage": "stop"}"#, true, Some("stop")),
        (r#"{"continue": false, "error": "broken"}"#, true, Some("broken")),
        (r#"{"continue": true, "systemMessage": null, "data": null, "error": null}"#, false, None),
        (r#"{"allow": true, "continue": false, "message": "both"}"#, true, Some("both")),
        (r#"{"allow": false, "continue": true}"#, true, None),
    ] {
        let output = output(Event::BeforeLlmCall, reply);
        assert_eq!(output.is_blocked(), blocked, "{reply}");
        assert_eq!(output.reason.or(output.system_message).as_deref(), message, "{reply}");
    }
}

#[test]
fn what_is_no_clear_yes_has_failed() {
    use FailureKind::{DuplicateKey, InvalidPermissionDecision, MalformedJson, NoReply, NonzeroExit, TrailingData};
    for (stdout, code, kind) in [
        ("", 0, NoReply),
        ("  \n", 0, NoReply),
        ("nope", 0, MalformedJson),
        ("{", 0, MalformedJson),
        ("[]", 0, MalformedJson),
        ("true", 0, MalformedJson),
        ("{}", 0, InvalidPermissionDecision),
        (r#"{"message": "x"}"#, 0, InvalidPermissionDecision),
        (r#"{"allow": null}"#, 0, InvalidPermissionDecision),
        (r#"{"allow": "true"}"#, 0, MalformedJson),
        (r#"{"allow": 1}"#, 0, MalformedJson),
        (r#"{"allow": true, "continue": "yes"}"#, 0, MalformedJson),
        (r#"{"allow": true, "message": 1}"#, 0, MalformedJson),
        (r#"{"allow": true, "metadata": []}"#, 0, MalformedJson),
        (r#"{"allow": false, "allow": true}"#, 0, DuplicateKey),
        (r#"{"allow": true} {}"#, 0, TrailingData),
        ("log line\n{\"allow\": true}", 0, MalformedJson),
        (r#"{"allow": true}"#, 1, NonzeroExit),
        (r#"{"allow": true}"#, 2, NonzeroExit),
        ("", -1, NonzeroExit),
    ] {
        match said_on(Event::BeforeLlmCall, stdout, code) {
            Said::Failed(found, _) => assert_eq!(found, kind, "{stdout} {code}"),
            said => panic!("{stdout} {code}: {said:?}"),
        }
    }
}

#[test]
fn the_message_of_a_hook_that_failed_is_kept() {
    let said = said_on(Event::PreToolUse, r#"{"allow": false, "message": "not on a friday"}"#, 1);
    assert_eq!(said, Said::Failed(FailureKind::NonzeroExit, "it exited with code 1: not on a friday".to_owned()));
}

#[test]
fn a_payload_of_its_own_is_read() {
    let payload = json!({
        "event": "post-tool-call",
        "context": {"tool": "t", "args": {"a": 1}, "result": "r", "metrics": {"duration": 0.5, "success": true, "rss": 7},
                    "session": {"id": "s", "user": "u"}, "more": [1]},
        "metadata": {"timestamp": "2026-01-16T10:05:30Z", "hookName": "h", "hookVersion": "1.0.0", "sessionId": "other"},
    });
    let (event, input) = Ollm.read_payload(None, payload).unwrap();
    assert_eq!(event, Event::PostToolUse);
    assert_eq!((input.tool_name.as_deref(), input.session_id.as_deref()), (Some("t"), Some("s")));
    assert_eq!((input.duration, input.success, input.user.as_deref()), (Some(0.5), Some(true), Some("u")));
    assert_eq!(input.timestamp.as_deref(), Some("2026-01-16T10:05:30Z"));
    assert_eq!(Value::from_iter(input.extra), json!({"metrics": {"rss": 7}, "more": [1]}));
}

#[test]
fn a_native_payload_is_read_too() {
    let native = json!({"tool_name": "shell", "tool_input": {"cmd": "ls"}});
    let (_, input) = Ollm.read_payload(Some(Event::PreToolUse), native).unwrap();
    assert_eq!(input.tool_name.as_deref(), Some("shell"));
}

#[test]
fn nothing_that_a_caller_calls_session_hides_the_session() {
    for event in [Event::PreToolUse, Event::OnError, Event::TurnStart] {
        for own in [json!("x"), json!({"id": "x", "user": "x", "tab": 1}), json!(null)] {
            let mut input = Input { session_id: Some("s".into()), ..Input::default() };
            input.extra.insert("session".to_owned(), own.clone());
            let line = Ollm.payload(&Occasion { event, input: &input, hook: None }).unwrap();
            let payload: Value = serde_json::from_slice(&line).unwrap();
            let session = &payload["context"]["session"];
            assert_eq!((&session["id"], session.get("user")), (&json!("s"), None), "{event:?} {own}");
            assert_eq!(session.get("tab"), own.get("tab"), "{event:?} {own}");
            let (_, read) = Ollm.read_payload(Some(event), payload).unwrap();
            assert_eq!((read.session_id.as_deref(), read.user), (Some("s"), None), "{event:?} {own}");
        }
    }
}

#[test]
fn tokens_are_counted_by_any_upstreams_names() {
    for (usage, total) in [
        (json!({"total_tokens": 5}), Some(json!(5))),
        (json!({"input_tokens": 2, "output_tokens": 3}), Some(json!(5))),
        (json!({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 9}), Some(json!(9))),
        (json!({"prompt_eval_count": 1, "eval_count": u64::MAX}), Some(json!(u64::MAX))),
        (json!({"prompt_eval_count": 2, "eval_count": 3, "input_tokens": 2, "output_tokens": 3}), Some(json!(5))),
        (json!({}), None),
        (json!("many"), None),
    ] {
        assert_eq!(tokens(Some(&usage)), total, "{usage}");
    }
}
