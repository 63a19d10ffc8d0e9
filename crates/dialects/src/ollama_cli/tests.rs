use super::*;

fn said_on(event: Event, stdout: &str, exit_code: i32) -> Said {
    OllamaCli.read_reply(event, &Printed { stdout: stdout.as_bytes(), stderr: "", exit_code })
}

fn output(event: Event, stdout: &str) -> Output {
    match said_on(event, stdout, 0) {
        Said::Output(output) => *output,
        said => panic!("{stdout}: {said:?}"),
    }
}

fn specific(event: Event, stdout: &str) -> HookSpecificOutput {
    output(event, stdout).hook_specific_output.unwrap()
}

fn payload(event: Event, input: &Input) -> Value {
    let line = OllamaCli.payload(&Occasion { event, input, hook: None }).unwrap();
    serde_json::from_slice(&line).unwrap()
}

#[test]
fn a_decision_stands_at_the_top_or_inside() {
    for (reply, decision) in [
        (r#"{"permissionDecision": "deny", "reason": "r"}"#, PermissionDecision::Deny),
        (r#"{"hookSpecificOutput": {"permissionDecision": "ask", "reason": "r"}}"#, PermissionDecision::Ask),
        (
            r#"{"hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisionReason": "r"}}"#,
            PermissionDecision::Allow,
        ),
        (
            r#"{"permissionDecision": "allow", "reason": "r", "hookSpecificOutput": {"permissionDecision": "deny"}}"#,
            PermissionDecision::Deny,
        ),
    ] {
        let specific = specific(Event::PreToolUse, reply);
        assert_eq!(specific.permission_decision, Some(decision), "{reply}");
        assert_eq!(specific.permission_decision_reason.as_deref(), Some("r"), "{reply}");
    }
}

#[test]
fn a_no_is_a_block_where_the_event_takes_no_decision() {
    let reply = r#"{"permissionDecision": "deny", "reason": "no"}"#;
    for event in [Event::UserPromptSubmit, Event::Stop, Event::SkillTrigger, Event::PreCompact] {
        let output = output(event, reply);
        assert!(output.is_blocked() && output.reason.as_deref() == Some("no"), "{}", event.name());
    }
    assert!(!output(Event::PreToolUse, reply).is_blocked());
    assert_eq!(specific(Event::UserPromptSubmit, r#"{"permissionDecision": "allow"}"#).permission_decision, None);
}

#[test]
fn rewrites_and_context_are_read() {
    let specific = specific(
        Event::PostToolUse,
        r#"{"updatedOutput": {"a": 1}, "additionalContext": "c", "updatedInput": {"x": 1}, "logged": true, "n": "1"}"#,
    );
    assert_eq!(specific.updated_tool_response, Some(json!({"a": 1})));
    assert_eq!(specific.additional_context.as_deref(), Some("c"));
    assert_eq!(Value::Object(specific.updated_input.unwrap()), json!({"x": 1}));
    let metadata = specific.metadata.unwrap();
    assert_eq!((metadata["logged"].as_str(), metadata["n"].as_str(), metadata.len()), ("true", "1", 2));
}

#[test]
fn the_arguments_of_a_skill_are_one_text() {
    for reply in [r#"{"updatedInput": "--all"}"#, r#"{"updatedInput": {"skill_params": "--all"}}"#] {
        let changes = specific(Event::SkillTrigger, reply).updated_input.unwrap();
        assert_eq!(changes["skill_args"], "--all", "{reply}");
    }
}

#[test]
fn a_no_counts_whatever_the_exit_code() {
    let no = r#"{"permissionDecision": "deny"}"#;
    for code in [0, 1, 2, 7, -1] {
        let Said::Output(output) = said_on(Event::PreToolUse, no, code) else { panic!("{code}") };
        assert!(is_no(&output), "{code}");
    }
    let yes = r#"{"permissionDecision": "allow", "reason": "r"}"#;
    let Said::Block(Some(added)) = said_on(Event::PreToolUse, yes, 2) else { panic!("2 blocks") };
    assert_eq!(added.hook_specific_output.unwrap().permission_decision, None);
    assert!(matches!(said_on(Event::PreToolUse, "{", 2), Said::Block(None)));
    for code in [1, -1] {
        assert!(matches!(said_on(Event::PreToolUse, yes, code), Said::Failed(FailureKind::NonzeroExit, _)), "{code}");
    }
}

#[test]
fn silence_is_no_opinion_and_plain_text_is_text() {
    assert_eq!(said_on(Event::PreToolUse, " \n", 0), Said::Nothing);
    for text in ["OK", "[1]", "hi\n{\"permissionDecision\": \"deny\"}"] {
        assert_eq!(said_on(Event::PreToolUse, text, 0), Said::Text(text.to_owned()));
    }
}

#[test]
fn what_cannot_be_understood_has_failed() {
    use FailureKind::{DuplicateKey, InvalidPermissionDecision, MalformedJson, TrailingData};
    for (stdout, kind) in [
        ("{", MalformedJson),
        (r#"{"permissionDecision": "deny"} x"#, TrailingData),
        (r#"{"permissionDecision": "deny", "permissionDecision": "allow"}"#, DuplicateKey),
        (r#"{"permissionDecision": "DENY"}"#, InvalidPermissionDecision),
        (r#"{"permissionDecision": true}"#, InvalidPermissionDecision),
        (r#"{"hookSpecificOutput": {"permissionDecision": "block"}}"#, InvalidPermissionDecision),
        (r#"{"hookSpecificOutput": []}"#, MalformedJson),
        (r#"{"reason": 1}"#, MalformedJson),
        (r#"{"updatedInput": "x"}"#, MalformedJson),
        (r#"{"additionalContext": ["x"]}"#, MalformedJson),
    ] {
        match said_on(Event::PreToolUse, stdout, 0) {
            Said::Failed(found, _) => assert_eq!(found, kind, "{stdout}"),
            said => panic!("{stdout}: {said:?}"),
        }
    }
}

#[test]
fn a_flat_key_never_hides_one_of_the_envelope() {
    let arguments = json!({"hook": "x", "model": "x", "data": "x", "tool": "x", "result": "x", "path": "p"});
    let input = Input {
        tool_name: Some("Write".into()),
        tool_input: arguments.as_object().cloned().map(Into::into),
        model_id: Some("llama3".into()),
        ..Input::default()
    };
    let payload = payload(Event::PreToolUse, &input);
    assert_eq!((&payload["hook"], &payload["model"]), (&json!("PreToolUse"), &json!("llama3")));
    assert_eq!((&payload["tool"], &payload["path"]), (&json!("Write"), &json!("p")));
    assert_eq!(payload["tool_input"], arguments);
    assert!(payload["data"].is_object());
}

#[test]
fn no_argument_passes_for_a_fact_that_is_not_known() {
    let arguments = json!({"tool": "Read", "success": true, "result": "fine", "path": "p"});
    let input = Input { tool_input: arguments.as_object().cloned().map(Into::into), ..Input::default() };
    let payload = payload(Event::PostToolUse, &input);
    for fact in ["tool", "success", "result"] {
        assert_eq!(payload.get(fact), None, "{fact}");
    }
    assert_eq!((&payload["path"], &payload["tool_input"]), (&json!("p"), &arguments));
}

#[test]
fn no_field_of_a_callers_own_hides_a_fact() {
    let mut input = Input { tool_name: Some("Bash".into()), ..Input::default() };
    input.extra.insert("tool".to_owned(), json!("Read"));
    assert_eq!(payload(Event::PreToolUse, &input)["tool"], "Bash");
}

#[test]
fn the_last_messages_are_shown_where_there_is_a_conversation() {
    let messages: Vec<_> = (0..60).map(|number| gatehook_events::Message::new("user", &number.to_string())).collect();
    let input = Input { messages: Some(messages.into()), cwd: Some("/p".into()), ..Input::default() };
    let prompt = payload(Event::UserPromptSubmit, &input);
    let shown = prompt["data"]["messages"].as_array().unwrap();
    assert_eq!((shown.len(), &shown[0]["content"]), (MESSAGES, &json!("10")));
    assert_eq!(prompt["data"]["context"], json!({"cwd": "/p"}));
    assert!(prompt.get("messages").is_none());
    assert!(payload(Event::PreToolUse, &input)["data"].get("messages").is_none());
}

#[test]
fn flat_payloads_met_in_the_wild_are_read() {
    let read = |event, given| OllamaCli.read_payload(Some(event), given).unwrap().1;
    let input = read(Event::PreToolUse, json!({"tool": "bash", "command": "rm -rf build"}));
    assert_eq!(input.tool_name.as_deref(), Some("bash"));
    assert_eq!(Value::Object((*input.tool_input.unwrap()).clone()), json!({"command": "rm -rf build"}));

    let given = json!({"tool_name": "file_read", "arguments": "README.md", "risk": "low"});
    let input = read(Event::PreToolUse, given.clone());
    let told = payload(Event::PreToolUse, &input);
    assert!(given.as_object().unwrap().iter().all(|(key, value)| told[key] == *value), "{told}");

    let input = read(Event::PostToolUse, json!({"tool_name": "file_read", "result": "x"}));
    assert_eq!(input.tool_response, Some(Arc::new(json!("x"))));
    let input = read(Event::SessionEnd, json!({"messages": 4, "total_tokens": 3, "cost": 0.5}));
    assert_eq!((input.message_count, input.summary), (Some(4), Some(json!({"total_tokens": 3, "cost": 0.5}))));
}

#[test]
fn a_callers_own_hook_name_is_told_as_it_is() {
    let given = json!({"hook": "TestHook", "data": {"test": true}});
    let (event, input) = OllamaCli.read_payload(Some(Event::Setup), given).unwrap();
    let told = payload(event, &input);
    assert_eq!((&told["hook"], &told["data"]["test"], &told["test"]), (&json!("TestHook"), &json!(true), &json!(true)));
    let native = Input { hook_event_name: Some("setup".into()), ..Input::default() };
    assert_eq!(payload(Event::Setup, &native)["hook"], "Setup");
}

#[test]
fn the_documented_variables_are_set_as_far_as_they_are_known() {
    let input =
        Input { cwd: Some("/p".into()), session_id: Some("s".into()), env_file: Some("/e".into()), ..Input::default() };
    let mut variables = OllamaCli.environment(&Occasion { event: Event::Setup, input: &input, hook: None });
    variables.sort();
    let expected = [
        ("OLLAMA_ENV_FILE", "/e"),
        ("OLLAMA_HOOKS_ENABLED", "true"),
        ("OLLAMA_PROJECT_DIR", "/p"),
        ("OLLAMA_SESSION_ID", "s"),
    ];
    assert_eq!(variables, expected.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn where_an_event_happens_is_told_in_its_context_and_not_beside_it() {
    let files = json!(["AGENTS.md"]);
    let extra = [("context_files".to_owned(), files.clone())].into();
    let input = Input { branch: Some("main".into()), cwd: Some("/w".into()), extra, ..Input::default() };
    let told = payload(Event::SessionStart, &input);
    let context = json!({"cwd": "/w", "git_branch": "main", "context_files": files});
    assert_eq!(told["data"]["context"], context);
    assert!(told.get("branch").is_none() && told.get("context_files").is_none(), "{told}");
}

#[test]
fn what_a_variable_tells_of_an_event_stands_in_the_line_too() {
    let text = |text: &str| Some(text.into());
    let input = Input {
        cwd: text("/p"),
        session_id: text("s"),
        model_id: text("llama3"),
        provider: text("ollama"),
        env_file: text("/p/env"),
        ..Input::default()
    };
    for event in Event::all().filter(|event| OllamaCli.event_name(*event).is_some()) {
        let payload = payload(event, &input);
        for (variable, value) in OllamaCli.environment(&Occasion { event, input: &input, hook: None }) {
            let told = match variable {
                "OLLAMA_SESSION_ID" => &payload["session_id"],
                "OLLAMA_MODEL" => &payload["model"],
                "OLLAMA_PROVIDER" => &payload["provider"],
                "OLLAMA_ENV_FILE" => &payload["env_file"],
                // These are the same for all events.
                "OLLAMA_PROJECT_DIR" | "OLLAMA_HOOKS_ENABLED" => continue,
                variable => panic!("{variable} is told commands alone"),
            };
            assert_eq!(*told, json!(value), "{variable} {event:?}");
        }
    }
}
