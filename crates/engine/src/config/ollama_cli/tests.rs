use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::definition::EnvPolicy;

fn read(text: &str) -> Result<HooksConfig, String> {
    parse("settings.json", text, &ReadOptions::default()).map_err(|error| error.to_string())
}

#[test]
fn every_event_and_every_type_is_read() {
    let text = r#"{
        "agent_models": {"coder": {"provider": "ollama", "model": "qwen"}},
        "hooks": {
            "Setup": [],
            "PreToolUse": [
                {"matcher": "bash|shell", "hooks": [
                    {"type": "command", "command": "python .ollama/hooks/policy.py", "timeout": 10},
                    {"type": "python", "module": "guard.rules", "function": "on_pre_tool_use"}
                ]},
                {"hooks": [{"type": "webhook", "url": "http://localhost:8000/hook", "method": "post",
                            "headers": {"X-Team": "red"}}]}
            ],
            "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "true", "shell": true}]}]
        }
    }"#;
    let config = read(text).unwrap();
    let shape: Vec<_> = config.groups.iter().map(|g| (g.event, g.matcher.as_str(), g.hooks.len())).collect();
    assert_eq!(shape, [(Event::PreToolUse, "bash|shell", 2), (Event::PreToolUse, "", 1), (Event::Stop, "", 1)]);
    let hooks: Vec<_> = config.groups.iter().flat_map(|group| &group.hooks).collect();
    assert!(hooks.iter().all(|hook| hook.profile == Profile::OllamaCli));
    assert_eq!(hooks[0].timeout, Some(Duration::from_secs(10)));
    assert_eq!(hooks[1].handler.kind(), "python");
    let HandlerDefinition::Webhook(webhook) = &hooks[2].handler else { panic!("{:?}", hooks[2]) };
    assert_eq!((webhook.method.as_str(), webhook.contract), ("POST", Contract::Native));
    assert_eq!(webhook.headers, [("X-Team".to_owned(), "red".to_owned())]);
}

#[test]
fn a_command_without_a_shell_is_a_program_and_its_words() {
    let text =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/bin/sh -c true", "shell": false}]}]}}"#;
    let config = read(text).unwrap();
    let HandlerDefinition::Command(command) = &config.groups[0].hooks[0].handler else { panic!("{config:?}") };
    assert_eq!((command.command.as_str(), command.shell), ("/bin/sh", false));
    assert_eq!(command.args, ["-c", "true"]);
}

#[test]
fn a_file_without_hooks_has_none() {
    for text in ["{}", r#"{"hooks": null}"#, r#"{"hooks": {}}"#, r#"{"hooks": {"Stop": [], "Setup": null}}"#] {
        assert!(read(text).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn each_fault_is_shown_at_its_place() {
    let text = r#"{"hooks": {
  "PreTooluse": [],
  "pre_tool_use": [],
  "Stop": {"hooks": []},
  "PreToolUse": [
    {"matcher": "(", "hooks": []},
    {"type": "command", "command": "x"},
    {"matchr": "a", "hooks": [
      {"type": "comand", "command": "x"},
      {"command": "x"},
      {"type": "command"},
      {"type": "command", "command": "x", "url": "http://h/"},
      {"type": "python", "function": "f"},
      {"type": "webhook", "url": "ftp://me:hunter2@h/"},
      {"type": "webhook", "url": "http://h/", "headers": {"Host": "hunter2"}},
      {"type": "command", "command": "no-such-program x", "shell": false}
    ]}
  ]
}}"#;
    assert_snapshot!(read(text).unwrap_err());
}

#[test]
fn the_environment_switches_all_off_but_managed_hooks() {
    let text = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    for (value, source, runs) in [
        ("false", Source::User, false),
        ("0", Source::Workspace, false),
        ("OFF", Source::User, false),
        ("true", Source::User, true),
        ("", Source::User, true),
        ("false", Source::Managed, true),
    ] {
        let env = [(HOOKS_ENABLED.to_owned(), value.to_owned())].into();
        let options = ReadOptions { env: &env, source, ..ReadOptions::default() };
        let config = parse("settings.json", text, &options).unwrap();
        assert_eq!(config.groups[0].hooks[0].switched_off.is_none(), runs, "{value} {source:?}");
    }
}

#[test]
fn a_workspace_hook_inherits_little() {
    let text = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    let options = ReadOptions { source: Source::Workspace, ..ReadOptions::default() };
    let config = parse("settings.json", text, &options).unwrap();
    assert_eq!(config.groups[0].hooks[0].env_policy, EnvPolicy::Minimal);
}

#[test]
fn a_matcher_on_an_event_without_subject_keeps_no_guard_from_running() {
    let text =
        r#"{"hooks": {"UserPromptSubmit": [{"matcher": "x(", "hooks": [{"type": "command", "command": "true"}]}]}}"#;
    assert_eq!(read(text).unwrap().groups.len(), 1);
}

proptest! {
    #[test]
    fn any_text_gives_hooks_or_problems(text in r#"(\PC|[{}\[\]":,]|"hooks"|"PreToolUse"|"type"|"command"){0,40}"#) {
        let _ = read(&text);
    }
}
