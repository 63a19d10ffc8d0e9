use std::collections::BTreeMap;
use std::time::Duration;

use gatehook_events::{Event, Profile};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::definition::*;

mod webhooks;

const BUILTINS: &[&str] = &["redact_secrets", "block_patterns"];

fn environment() -> BTreeMap<String, String> {
    let variables = [("PATH", "/usr/bin:/bin"), ("TOKEN", "t0k ${env.PATH}")];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn options(env: &BTreeMap<String, String>) -> ReadOptions<'_> {
    ReadOptions {
        env,
        builtins: Some(BUILTINS),
        working_dir: "/".into(),
        sections: &["upstreams"],
        ..Default::default()
    }
}

fn read(text: &str) -> Result<File, ConfigError> {
    parse("g.yaml", text, Format::Yaml, &options(&environment()))
}

fn hooks(text: &str) -> Vec<(Event, HookDefinition)> {
    let file = read(text).unwrap_or_else(|error| panic!("{error}"));
    file.hooks
        .groups
        .into_iter()
        .flat_map(|group| group.hooks.into_iter().map(move |hook| (group.event, hook)))
        .collect()
}

fn hook(text: &str) -> HookDefinition {
    hooks(&format!("hooks:\n  stop: {text}\n")).remove(0).1
}

/// Each case of `diagnostics.txt`: a name, a file, and all that is said about it.
#[test]
fn each_problem_is_said_with_its_place_and_remedy() {
    let cases = include_str!("tests/diagnostics.txt").split("=== ").skip(1);
    for case in cases {
        let (name, rest) = case.split_once('\n').unwrap();
        let (text, expected) = rest.split_once("---\n").unwrap();
        let error = read(text).map_or_else(|error| error.to_string(), |file| format!("{file:?}"));
        assert_eq!(error, expected.trim_end_matches('\n'), "{name}");
    }
}

/// Kind and path of the first problem of what stands under `hooks:`; nothing where there is none.
fn first(profile: Profile, hooks: &Json) -> Option<(&'static str, String)> {
    let options = ReadOptions { profile, types: &["of_its_own"], builtins: Some(BUILTINS), ..Default::default() };
    let error = hooks_from_json(hooks, &options).err()?;
    let first = &error.diagnostics[0];
    Some((first.kind.name(), first.path.clone()))
}

#[test]
fn docker_agent_is_judged_in_its_own_order() {
    let ok = json!({ "type": "command", "command": "x" });
    let cases = [
        (json!({ "pre_tool_use_pre_yolo": [] }), "unknown_event", "pre_tool_use_pre_yolo"),
        (json!({ "pre_inference": [] }), "unknown_event", "pre_inference"),
        (
            json!({ "stop": [{ "timeout": -1 }, { "on_error": "block" }] }),
            "on_error_block_unsupported",
            "hooks.stop[1]",
        ),
        (
            json!({ "tool_response_transform": [{ "matcher": "(", "hooks": [{ "on_error": "block" }] }] }),
            "on_error_block_unsupported",
            "hooks.tool_response_transform[0].hooks[0]",
        ),
        (
            json!({ "tool_guard": [{ "matcher": "(", "preempt_yolo": true, "hooks": [] }] }),
            "preempt_yolo_unsupported",
            "hooks.tool_guard[0]",
        ),
        (
            json!({ "pre_tool_use": [{ "matcher": "(", "preempt_yolo": true, "hooks": [] }] }),
            "invalid_matcher",
            "hooks.pre_tool_use[0]",
        ),
        (json!({ "pre_tool_use": [{ "matcher": "a" }] }), "hooks_required", "hooks.pre_tool_use[0]"),
        (json!({ "pre_tool_use": { "matcher": "a", "hooks": null } }), "hooks_required", "hooks.pre_tool_use[0]"),
        (json!({ "stop": [{ "on_error": "explode", "timeout": -1 }] }), "invalid_on_error", "hooks.stop[0]"),
        (json!({ "stop": [{ "timeout": -1, "type": "nope" }] }), "negative_timeout", "hooks.stop[0]"),
        (json!({ "stop": [{ "type": "" }] }), "type_required", "hooks.stop[0]"),
        (json!({ "stop": [ok, null] }), "not_a_hook_or_list", "hooks.stop[1]"),
        (json!({ "stop": [{ "type": "command", "command": "" }] }), "command_required", "hooks.stop[0]"),
        (json!({ "stop": [{ "type": "model" }] }), "model_required", "hooks.stop[0]"),
        (json!({ "stop": [{ "type": "model", "model": "m" }] }), "prompt_required", "hooks.stop[0]"),
        (json!({ "stop": [{ "type": "http" }] }), "unsupported_type", "hooks.stop[0]"),
        (json!({ "stop": [{ "type": "webhook" }] }), "unsupported_type", "hooks.stop[0]"),
        (json!({ "stop": [{ "comand": "x", "timeout": -1 }] }), "unknown_field", "hooks.stop[0]"),
        (json!({ "stop": [{ "dialect": "native" }] }), "unknown_field", "hooks.stop[0]"),
        (json!({ "stop": [{ "matcher": "a", "hooks": [ok] }] }), "unknown_field", "hooks.stop[0]"),
        (json!({ "pre_tool_use": [ok] }), "unknown_field", "hooks.pre_tool_use[0]"),
        (
            json!({ "pre_tool_use": [{ "matcher": "a", "hooks": [ok], "when": {} }] }),
            "unknown_field",
            "hooks.pre_tool_use[0]",
        ),
        (json!({ "pre_tool_use": [{ "hooks": "exit 0" }] }), "not_a_hook_or_list", "hooks.pre_tool_use[0].hooks"),
        (json!({ "stop": [{ "type": "command", "command": "x", "timeout": "5s" }] }), "wrong_type", "hooks.stop[0]"),
    ];
    for (hooks, kind, path) in cases {
        assert_eq!(first(Profile::DockerAgent, &hooks), Some((kind, path.to_owned())), "{hooks}");
    }
    for hooks in [
        json!({ "stop": null }),
        json!({ "stop": [{ "type": "builtin", "command": "no_such_builtin" }] }),
        json!({ "stop": [{ "type": "model", "model": "m", "prompt": "p", "schema": "no_such_schema" }] }),
        json!({ "stop": [{ "type": "of_its_own", "anything": [1] }] }),
        json!({ "stop": [{ "type": "command", "command": "x", "timeout": 0, "args": ["ignored"], "on_error": "" }] }),
        json!({ "pre_tool_use": [{ "hooks": ok }] }),
    ] {
        assert_eq!(first(Profile::DockerAgent, &hooks), None, "{hooks}");
    }
}

#[test]
fn an_event_of_another_profile_is_said_to_be_one() {
    let read = |profile, event: &str| {
        let options = ReadOptions { profile, ..Default::default() };
        hooks_from_json(&json!({ event: [] }), &options).unwrap_err().diagnostics.remove(0)
    };
    for (profile, event, message, help) in [
        (Profile::DockerAgent, "pre_inference", "docker-agent has no event `pre_inference`", "hooks of native have it"),
        (
            Profile::DockerAgentV158,
            "tool_guard",
            "docker-agent@v1.58 has no event `tool_guard`",
            "hooks of native and docker-agent have it",
        ),
        (Profile::DockerAgent, "stpo", "there is no event `stpo`", "did you mean `stop`?"),
    ] {
        let found = read(profile, event);
        assert_eq!((found.message.as_str(), found.help.as_deref()), (message, Some(help)));
    }
}

#[test]
fn v158_checks_that_something_runs_and_no_more() {
    for (hooks, kind) in [
        (json!({ "stop": [{ "type": "command", "command": "x", "on_error": "explode", "timeout": -1 }] }), None),
        (json!({ "stop": [{ "type": "command", "command": "x", "on_error": "block" }] }), None),
        (json!({ "pre_tool_use": [{ "matcher": "(", "hooks": [{ "type": "command", "command": "x" }] }] }), None),
        (json!({ "tool_guard": [] }), Some("unknown_event")),
        (json!({ "pre_tool_use": [{ "matcher": "(" }] }), Some("hooks_required")),
        (json!({ "stop": [{}] }), Some("type_required")),
        (json!({ "stop": [{ "type": "nope" }] }), Some("unsupported_type")),
        (json!({ "stop": [{ "type": "command" }] }), Some("command_required")),
        (json!({ "stop": [{ "type": "model", "model": "m" }] }), Some("prompt_required")),
    ] {
        assert_eq!(first(Profile::DockerAgentV158, &hooks).map(|(kind, _)| kind), kind, "{hooks}");
    }
}

#[test]
fn native_files_read_docker_agents_hooks_as_they_are() {
    let ok = json!({ "type": "command", "command": "x", "timeout": 5, "env": { "A": "1" }, "working_dir": "sub", "on_error": "ignore", "strict_output": true });
    let text = json!({
        "pre_tool_use": [{ "matcher": "shell", "hooks": [ok, ok], "preempt_yolo": true }],
        "session_start": ok,
        "before_llm_call": [ok],
    });
    let read = |profile| hooks_from_json(&text, &ReadOptions { profile, ..Default::default() }).unwrap();
    let (mut native, docker) = (read(Profile::Native), read(Profile::DockerAgent));
    for hook in native.groups.iter_mut().flat_map(|group| &mut group.hooks) {
        assert_eq!(hook.profile, Profile::Native);
        hook.profile = Profile::DockerAgent;
    }
    assert_eq!(native, docker);
    assert!(docker.groups.iter().any(|group| group.event == Event::PreToolUsePreempt && group.matcher == "shell"));
}

#[test]
fn what_was_not_validated_is_left_to_dispatch() {
    let text = json!({ "pre_tool_use": [{ "matcher": "(", "hooks": [{ "type": "nope" }, { "type": "builtin" }, {}, { "type": "command", "on_error": "block" }] }] });
    let options = ReadOptions { profile: Profile::DockerAgent, validate: false, ..Default::default() };
    let config = hooks_from_json(&text, &options).unwrap();
    let kinds: Vec<&str> = config.groups[0].hooks.iter().map(|hook| hook.handler.kind()).collect();
    assert_eq!((config.groups[0].matcher.as_str(), kinds), ("(", vec!["nope", "builtin", "", "command"]));
}

#[test]
fn hooks_and_groups_keep_their_order() {
    let text = "hooks:\n  tool_guard:\n    - {name: a, type: command, command: x}\n    - {name: b, type: command, command: x}\n    \
                - {matcher: m, hooks: [{name: c, type: command, command: x}]}\n    - {name: d, type: command, command: x}\n";
    let groups = read(text).unwrap().hooks.groups;
    let shape: Vec<(&str, Vec<&str>)> = groups
        .iter()
        .map(|group| (group.matcher.as_str(), group.hooks.iter().map(HookDefinition::display_name).collect()))
        .collect();
    assert_eq!(shape, [("", vec!["a", "b"]), ("m", vec!["c"]), ("", vec!["d"])]);
}

#[test]
fn every_native_field_is_read() {
    let text = "hooks:
  tool_input_transform:
    - {name: n, type: command, command: ls, args: [-l, 5], shell: false, timeout: 1m30s, env: {A: 'a${env.TOKEN}', B: 8080, C: '$X'},
       env_policy: {only: [PATH]}, working_dir: sub, on_error: warn, strict_output: true, async: true,
       when: {tool_input.path: '.*\\.rs', agent: a}, patch: merge_patch, include_images: true}
  post_inference:
    type: webhook
    url: http://h/x
    method: PUT
    headers: {Authorization: 'Bearer ${env.TOKEN}', X: '${other}'}
    contract: ollama
    stream: {mode: window, thinking: observe, tool_calls: pass, size: 1024, max_wait: 50ms, overlap: 256, holdback: 9}
";
    let hooks = hooks(text);
    let (event, hook) = &hooks[0];
    let command =
        CommandDefinition { command: "/usr/bin/ls".into(), args: vec!["-l".into(), "5".into()], shell: false };
    let condition = |field: &str, pattern: &str| Condition { field: field.into(), pattern: pattern.into() };
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = HookDefinition {
        name: Some("n".into()),
        timeout: Some(Duration::from_secs(90)),
        env: [variable("A", "at0k ${env.PATH}"), variable("B", "8080"), variable("C", "$X")].into(),
        env_policy: EnvPolicy::Only(vec!["PATH".into()]),
        working_dir: Some("sub".into()),
        on_error: Some(OnError::Warn),
        strict_output: true,
        observer: true,
        when: vec![condition("tool_input.path", r".*\.rs"), condition("agent", "a")],
        patch: Patch::MergePatch,
        include_images: true,
        ..HookDefinition::new(Profile::Native, HandlerDefinition::Command(command))
    };
    assert_eq!((*event, hook), (Event::ToolInputTransform, &expected));
    assert_eq!(hook.origin.line, 3);
    let webhook = WebhookDefinition {
        method: "PUT".into(),
        headers: vec![variable("Authorization", "Bearer t0k ${env.PATH}"), variable("X", "${other}")],
        ..WebhookDefinition::new("http://h/x", Contract::Ollama)
    };
    let stream = Stream {
        mode: StreamMode::Window,
        thinking: Some(StreamMode::Observe),
        tool_calls: ToolCalls::Pass,
        size: Some(1024),
        max_wait: Some(Duration::from_millis(50)),
        overlap: Some(256),
        holdback: Some(9),
    };
    let expected = HookDefinition {
        stream: Some(stream),
        ..HookDefinition::new(Profile::Native, HandlerDefinition::Webhook(webhook))
    };
    assert_eq!(hooks[1], (Event::PostInference, expected));
}

#[test]
fn workers_and_python_hooks_are_read() {
    let text = "hooks:
  pre_inference:
    - {type: worker, command: ls, args: [-l], shell: false, workers: 3, max_in_flight: 4, idle_timeout: 30s, env_policy: minimal}
    - {type: worker, command: ./judge}
    - {type: python, module: .gatehook/guard.py, function: check, python: python3.12, workers: 5, idle_timeout: 0s, env_policy: minimal}
    - {type: python, module: rules.guard.check}
";
    let number = |number| std::num::NonZeroUsize::new(number).unwrap();
    let command = |command: &str, args: Vec<String>, shell| CommandDefinition { command: command.into(), args, shell };
    let worker = WorkerDefinition {
        command: command("/usr/bin/ls", vec!["-l".into()], false),
        workers: number(3),
        max_in_flight: number(4),
        idle_timeout: Duration::from_secs(30),
    };
    let python = PythonDefinition {
        python: Some("python3.12".into()),
        workers: number(5),
        idle_timeout: Duration::ZERO,
        ..PythonDefinition::new(".gatehook/guard.py", Some("check"))
    };
    let expected = [
        HandlerDefinition::Worker(worker),
        HandlerDefinition::Worker(WorkerDefinition::new(command("./judge", vec![], true))),
        HandlerDefinition::Python(python),
        HandlerDefinition::Python(PythonDefinition::new("rules.guard.check", None)),
    ];
    assert_eq!(hooks(text).into_iter().map(|(_, hook)| hook.handler).collect::<Vec<_>>(), expected);
}

#[test]
fn numbers_of_processes_have_bounds() {
    for (field, text) in
        [("workers", "0"), ("workers", "65"), ("max_in_flight", "0"), ("max_in_flight", "257"), ("idle_timeout", "-1s")]
    {
        let text = format!("hooks: {{stop: {{type: worker, command: x, {field}: {text}}}}}");
        let error = read(&text).unwrap_err();
        assert_eq!(error.diagnostics.len(), 1, "{text}");
        assert!(matches!(error.kind(), Some(DiagnosticKind::InvalidValue | DiagnosticKind::WrongType)), "{text}");
    }
}

#[test]
fn defaults_fill_what_hooks_leave_out() {
    let text = "defaults: {timeout: 2s, on_error: block, env_policy: minimal}\nhooks:\n  \
                pre_inference: {type: command, command: x}\n  session_end: {type: command, command: x}\n  \
                stop: {type: command, command: x, timeout: 3, on_error: ignore, env_policy: inherit}\n";
    let found: Vec<_> =
        hooks(text).into_iter().map(|(_, hook)| (hook.timeout, hook.on_error, hook.env_policy)).collect();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(
        found,
        [
            (seconds(2), Some(OnError::Block), EnvPolicy::Minimal),
            // What cannot be blocked keeps its own default.
            (seconds(2), None, EnvPolicy::Minimal),
            (seconds(3), Some(OnError::Ignore), EnvPolicy::Inherit),
        ]
    );
}

#[test]
fn hooks_of_a_workspace_inherit_little_and_read_no_files_outside() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(folder.path().join("outside"), "secret").unwrap();
    std::fs::write(workspace.join("inside"), "token\n").unwrap();
    let config = workspace.join("gatehook.yaml");
    let read = |path: &str, source| {
        let text = format!(
            "hooks: {{stop: {{type: webhook, url: 'http://h', headers: {{A: {{file: '{path}'}}, B: 'x ${{file:{path}}}'}}}}}}"
        );
        std::fs::write(&config, text).unwrap();
        load(&config, &ReadOptions { source, ..Default::default() })
    };
    let headers = |file: File| match file.hooks.groups[0].hooks[0].handler.clone() {
        HandlerDefinition::Webhook(webhook) => webhook.headers.into_iter().map(|(_, value)| value).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let inside = read("inside", Source::Workspace).unwrap();
    assert_eq!(inside.hooks.groups[0].hooks[0].env_policy, EnvPolicy::Minimal);
    assert_eq!(inside.hooks.groups[0].hooks[0].origin.file.as_deref(), Some(&config));
    assert_eq!(headers(inside), ["token", "x token"]);
    for path in ["../outside".to_owned(), folder.path().join("outside").display().to_string()] {
        assert_eq!(read(&path, Source::Workspace).unwrap_err().kind(), Some(DiagnosticKind::MissingFile), "{path}");
        assert_eq!(headers(read(&path, Source::User).unwrap()), ["secret", "x secret"]);
    }
}

#[test]
fn what_needs_an_approval_inherits_little_in_every_dialect() {
    let native = "hooks: {stop: {type: command, command: x}}";
    let ollama_cli = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#;
    let ollm = r#"{"hooks": {"custom": [{"name": "n", "command": "sh"}]}}"#;
    for (_, source) in SOURCES {
        for (profile, text) in [
            (Profile::Native, native),
            (Profile::OllamaCli, ollama_cli),
            (Profile::Ollm, ollm),
            (Profile::DockerAgent, native),
        ] {
            let env = environment();
            let options = ReadOptions { source, profile, ..options(&env) };
            let file = parse("f.yaml", text, Format::Yaml, &options).unwrap_or_else(|error| panic!("{error}"));
            let policy = if source.needs_approval() { EnvPolicy::Minimal } else { EnvPolicy::Inherit };
            assert_eq!(file.hooks.groups[0].hooks[0].env_policy, policy, "{source:?} {profile:?}");
        }
    }
}

#[test]
fn the_bounds_of_a_hooks_processes_are_read() {
    let read = hook(
        "{type: command, command: x, max_memory: 512MiB, max_cpu_seconds: 2, max_file_size: 4096, user: 1000, \
         sandbox: {network: none, write: [cache, /tmp/x], required: false}}",
    );
    let sandbox = Sandbox { no_network: true, write: Some(vec!["cache".into(), "/tmp/x".into()]), required: false };
    let expected = Confinement {
        max_memory: Some(512 << 20),
        max_cpu_seconds: std::num::NonZeroU64::new(2),
        max_file_size: Some(4096),
        sandbox: Some(sandbox),
        user: Some("1000".into()),
    };
    assert_eq!(read.confinement, expected);
    let least = hook("{type: python, module: m, max_file_size: 0, user: nobody, sandbox: {write: []}}").confinement;
    assert_eq!((least.max_file_size, least.user.as_deref()), (Some(0), Some("nobody")));
    assert_eq!(least.sandbox, Some(Sandbox { no_network: false, write: Some(vec![]), required: true }));
    assert!(hook("{type: worker, command: x}").confinement.is_none());
}

#[test]
fn hooks_that_differ_in_their_bounds_are_two() {
    let (plain, bounded) =
        (hook("{type: command, command: x}"), hook("{type: command, command: x, sandbox: {network: none}}"));
    assert_ne!(plain, bounded);
}

#[test]
fn docker_agent_takes_a_missing_variable_as_empty_and_v158_expands_none() {
    for (profile, value) in [(Profile::DockerAgent, "ab"), (Profile::DockerAgentV158, "a${env.NO}b")] {
        let hooks = json!({ "stop": { "type": "command", "command": "x", "env": { "X": "a${env.NO}b" } } });
        let config = hooks_from_json(&hooks, &ReadOptions { profile, ..Default::default() }).unwrap();
        assert_eq!(config.groups[0].hooks[0].env["X"], value);
    }
}

#[test]
fn docker_agents_hooks_differ_by_fields_that_their_type_does_not_read() {
    let hook = |field: &str| json!({ "type": "command", "command": "x", field: "same" });
    let hooks = json!({ "stop": [hook("name"), hook("model"), hook("prompt"), hook("schema"), hook("model")] });
    let options = ReadOptions { profile: Profile::DockerAgent, ..Default::default() };
    let hooks = hooks_from_json(&hooks, &options).unwrap().groups.remove(0).hooks;
    let firsts: Vec<_> = hooks.iter().map(|hook| hooks.iter().position(|other| other == hook).unwrap()).collect();
    assert_eq!(firsts, [0, 1, 2, 3, 1]);
}

#[test]
fn no_problem_shows_credentials_or_what_is_meant_for_a_shell() {
    for hook in [
        "{type: webhook, url: 'http://us er:hunter2@h', contract: 5}",
        "{type: webhook, url: 'http://u:hunter2@h/@x', contract: 5}",
        "{type: webhook, url: 'http://u:hunter2@'}",
    ] {
        let error = read(&format!("hooks:\n  pre_inference:\n    - {hook}\n")).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
    let line = "hooks:\n  pre_inference:\n    - {type: command, shell: false, command: 'curl -H hunter2'}\n";
    let messages: Vec<_> = read(line).unwrap_err().diagnostics.into_iter().map(|problem| problem.message).collect();
    assert_eq!(messages, ["the program `curl …` is nowhere on PATH"]);
}

#[test]
fn docker_agents_hooks_differ_by_variables_as_they_are_written() {
    let hook = |value: &str| json!({"type": "command", "command": "x", "env": {"A": value}});
    let hooks = json!({"stop": [hook("${env.ONE}"), hook("1"), hook("${env.ONE}")]});
    let env = BTreeMap::from([("ONE".to_owned(), "1".to_owned())]);
    let options = ReadOptions { profile: Profile::DockerAgent, ..options(&env) };
    let hooks = hooks_from_json(&hooks, &options).unwrap().groups.remove(0).hooks;
    assert_eq!(hooks[0].env, hooks[1].env);
    assert_eq!((hooks[0] == hooks[1], hooks[0] == hooks[2]), (false, true));
}

#[test]
fn an_embedders_type_keeps_its_fields() {
    let options = ReadOptions { types: &["policy"], ..Default::default() };
    let hooks = json!({ "stop": { "type": "policy", "timeout": 1, "rules": { "a": [1, 2.5, null] } } });
    let config = hooks_from_json(&hooks, &options).unwrap();
    let Json::Object(fields) = json!({ "rules": { "a": [1, 2.5, null] } }) else { panic!() };
    assert_eq!(config.groups[0].hooks[0].handler, HandlerDefinition::Other { kind: "policy".into(), fields });
}

#[test]
fn a_file_of_many_problems_is_read_in_bounded_time_and_space() {
    let file = |hooks: usize| {
        let bad = (0..hooks).map(|n| format!("    - {{type: comand{n}, tiemout{n}: 1, a: b, c: d}}\n"));
        format!("hooks:\n  stop:\n{}", bad.collect::<String>())
    };
    assert_eq!(read(&file(30_000)).unwrap_err().kind(), Some(DiagnosticKind::TooLarge));
    assert_eq!(read(&file(10_000)).unwrap_err().diagnostics.len(), MAX_PROBLEMS);
}

#[test]
fn a_timeout_is_seconds_or_text() {
    for (text, millis) in [("3", 3000), ("0.25", 250), ("500ms", 500), ("'1m'", 60_000)] {
        let hook = hook(&format!("{{type: command, command: x, timeout: {text}}}"));
        assert_eq!(hook.timeout, Some(Duration::from_millis(millis)), "{text}");
    }
}

/// Text that a hook may hold anywhere.
fn word() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-zé ö\\\\\"'#:&*!|>%@`{},\\[\\]\n\t\u{85}\u{2028}~0-9-]{1,12}").unwrap()
}

fn any_hook() -> impl Strategy<Value = Json> {
    let command = (word(), word(), 1..100_i64, any::<bool>()).prop_map(|(name, command, timeout, strict)| {
        json!({ "name": name, "type": "command", "command": format!("x{command}"), "timeout": timeout, "strict_output": strict })
    });
    let builtin = proptest::collection::vec(word(), 0..3)
        .prop_map(|args| json!({ "type": "builtin", "command": "redact_secrets", "args": args, "env": { "A": "b" } }));
    let webhook =
        (0.5..9.5_f64).prop_map(|timeout| json!({ "type": "webhook", "url": "https://h/x", "timeout": timeout }));
    prop_oneof![command, builtin, webhook]
}

fn any_file() -> impl Strategy<Value = Json> {
    let events = proptest::sample::subsequence(vec!["pre_tool_use", "stop", "post_inference", "tool_guard"], 1..4);
    let hooks = proptest::collection::vec(any_hook(), 1..3);
    (events, hooks, any::<bool>()).prop_map(|(events, hooks, flat)| {
        let group = |event: &str| match flat || event == "stop" {
            true => (event.to_owned(), json!(hooks)),
            false => (event.to_owned(), json!([{ "matcher": "a|b", "hooks": hooks }])),
        };
        let events: serde_json::Map<String, Json> = events.into_iter().map(group).collect();
        json!({ "dialect": "native", "hooks": events })
    })
}

/// Block YAML, with strings in double quotes.
fn to_yaml(value: &Json, indent: usize) -> String {
    let pad = "  ".repeat(indent);
    match value {
        Json::Object(entries) if !entries.is_empty() => {
            entries.iter().map(|(key, value)| format!("\n{pad}{key}: {}", to_yaml(value, indent + 1))).collect()
        }
        Json::Array(items) if !items.is_empty() => {
            items.iter().map(|item| format!("\n{pad}- {}", to_yaml(item, indent + 1))).collect()
        }
        Json::String(text) => {
            let escaped = text.chars().map(|c| match c {
                '"' | '\\' => format!("\\{c}"),
                c if c.is_control() || c == '\u{2028}' => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            });
            format!("\"{}\"", escaped.collect::<String>())
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn all_formats_say_the_same(file in any_file()) {
        let env = environment();
        let read = |text: &str, format| parse("f", text, format, &options(&env)).map_err(|error| error.to_string());
        let json = read(&file.to_string(), Format::Json);
        prop_assert!(json.is_ok(), "{:?}", json);
        let yaml = to_yaml(&file, 0);
        prop_assert_eq!(&read(&yaml, Format::Yaml), &json, "{}", yaml);
        let toml = ::toml::to_string(&file).unwrap();
        prop_assert_eq!(&read(&toml, Format::Toml), &json, "{}", toml);
    }

    #[test]
    fn no_hooks_bring_the_reader_down(file in any_file(), at in any::<prop::sample::Index>(), with in word()) {
        let mut text = file.to_string();
        let at = (0..=text.len()).rev().find(|&place| text.is_char_boundary(place) && place <= at.index(text.len())).unwrap();
        text.insert_str(at, &with);
        for profile in [Profile::Native, Profile::DockerAgent, Profile::DockerAgentV158] {
            let options = ReadOptions { profile, ..Default::default() };
            for format in [Format::Json, Format::Yaml] {
                let _ = parse("f", &text, format, &options).map_err(|error| error.to_string());
            }
        }
    }
}
