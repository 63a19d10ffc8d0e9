use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn read(text: &str, source: Source) -> Result<OllmFile, String> {
    let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
    let options = ReadOptions { env: &env, source, ..ReadOptions::default() };
    parse("hooks.json", text, Format::Json, &options).map_err(|error| error.to_string())
}

fn user(text: &str) -> OllmFile {
    read(text, Source::User).unwrap()
}

#[test]
fn records_are_read_by_event() {
    let file = user(
        r#"{"hooks": {
            "pre-tool-call": [
                {"id": "a", "name": "first", "command": "sh", "args": ["-c", "true"], "source": "user"},
                {"name": "second", "command": "/bin/sh", "timeout": 250, "version": "3.0.0"}
            ],
            "custom": [{"name": "third", "command": "sh"}]
        }}"#,
    );
    let shape: Vec<_> = file.hooks.groups.iter().map(|group| (group.event, group.hooks.len())).collect();
    assert_eq!(shape, [(Event::PreToolUse, 2), (Event::Custom, 1)]);
    let hooks: Vec<_> = file.hooks.groups.iter().flat_map(|group| &group.hooks).collect();
    let HandlerDefinition::Command(command) = &hooks[0].handler else { panic!("{:?}", hooks[0]) };
    assert!(command.command.ends_with("/sh") && !command.shell, "{command:?}");
    assert_eq!(command.args, ["-c", "true"]);
    assert_eq!((hooks[0].display_name(), hooks[0].timeout()), ("first", Duration::from_secs(5)));
    assert_eq!((hooks[1].timeout(), hooks[1].version.as_deref()), (Duration::from_millis(250), Some("3.0.0")));
}

#[test]
fn options_stand_beside_the_events() {
    let file = user(
        r#"{"hooks": {"enabled": true, "timeout": 30000, "trustWorkspace": true,
                      "custom": [{"name": "n", "command": "sh"}]}}"#,
    );
    assert_eq!(file.options.trust_workspace, Some(true));
    assert_eq!(file.hooks.groups[0].hooks[0].timeout(), Duration::from_secs(30));
}

#[test]
fn hooks_that_somebody_disabled_do_not_run() {
    let records = r#""custom": [{"id": "a", "name": "n", "command": "sh"}, {"id": "b", "name": "m", "command": "sh"},
                                {"name": "off", "command": "sh", "enabled": false}]"#;
    let named = |file: &OllmFile| -> Vec<String> {
        let hooks = file.hooks.groups.iter().flat_map(|group| &group.hooks);
        hooks.filter(|hook| hook.switched_off.is_none()).map(|hook| hook.display_name().to_owned()).collect()
    };
    let text = format!(r#"{{"hooks": {{"enabled": {{"a": false, "b": true}}, {records}}}}}"#);
    assert_eq!(named(&user(&text)), ["m"]);
    assert_eq!(user(&text).options.disabled, ["a"]);
    assert_eq!(named(&read(&text, Source::Managed).unwrap()), ["n", "m"]);
    let text = format!(r#"{{"hooks": {{"enabled": false, {records}}}}}"#);
    assert!(named(&user(&text)).is_empty());
    assert_eq!(named(&read(&text, Source::Managed).unwrap()), ["n", "m"]);
}

#[test]
fn options_of_one_file_hold_for_hooks_of_another() {
    let mut file = user(
        r#"{"hooks": {"custom": [{"id": "a", "name": "n", "command": "sh"},
                                 {"name": "b", "command": "sh", "timeout": 7}, {"name": "c", "command": "sh"}]}}"#,
    );
    let said = user(r#"{"hooks": {"enabled": {"a": false, "b": false}, "timeout": 900}}"#).options;
    said.or(user(r#"{"hooks": {"timeout": 1, "enabled": {"n": false}}}"#).options).apply(&mut file.hooks, "settings");
    let off: Vec<_> = file.hooks.groups[0].hooks.iter().map(|hook| hook.switched_off.as_deref()).collect();
    assert_eq!(off, [Some("settings"), Some("settings"), None]);
    let timeouts: Vec<_> = file.hooks.groups[0].hooks.iter().map(|hook| hook.timeout().as_millis()).collect();
    assert_eq!(timeouts, [900, 7, 900]);
}

#[test]
fn a_record_cannot_claim_more_authority_than_its_file_has() {
    for (claimed, of_file, source) in [
        ("builtin", Source::Workspace, Source::Workspace),
        ("user", Source::Workspace, Source::Workspace),
        ("user", Source::User, Source::User),
        ("workspace", Source::User, Source::Workspace),
        ("builtin", Source::User, Source::Builtin),
        ("downloaded", Source::Managed, Source::Downloaded),
    ] {
        let text = format!(r#"{{"hooks": {{"custom": [{{"name": "n", "command": "sh", "source": "{claimed}"}}]}}}}"#);
        let file = read(&text, of_file).unwrap();
        assert_eq!(file.hooks.groups[0].hooks[0].origin.source, source, "{claimed} in {of_file:?}");
    }
}

#[test]
fn each_fault_is_shown_at_its_place() {
    let text = r#"{"hooks": {
  "pre-toolcall": [],
  "session_start": [],
  "timeout": -1,
  "custom": [
    {"command": "sh"},
    {"name": "a"},
    {"name": "a", "command": "sh -c true"},
    {"name": "a", "command": "sh", "args": "x"},
    {"name": "a", "command": "sh", "id": "a b"},
    {"name": "a", "command": "sh", "source": "mars"},
    {"name": "a", "command": "sh", "matcher": "x"},
    "sh"
  ],
  "on-error": {"name": "a", "command": "sh"}
}}"#;
    assert_snapshot!(read(text, Source::User).unwrap_err());
    let panel = r#"{"name": "N", "when": {"type": "fileEdited", "patterns": ["*.ts"]}, "then": {"type": "askAgent"}}"#;
    assert!(read(panel, Source::User).unwrap_err().contains("speaks no hook protocol"));
}

proptest! {
    #[test]
    fn any_text_gives_hooks_or_problems(text in r#"(\PC|[{}\[\]":,]|"hooks"|"custom"|"name"|"command"){0,40}"#) {
        let _ = read(&text, Source::User);
    }
}
