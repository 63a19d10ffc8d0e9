//! What is imported means the same as what it was made from.

use gatehook_engine::definition::HooksConfig;

use super::*;

fn env() -> Env {
    [("PATH", "/usr/bin:/bin"), ("TOKEN", "t")].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// What a file says, what is made of it, and what that says.
fn imported(name: &str, text: &str, from: Option<Profile>) -> (HooksConfig, Native, HooksConfig) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    let env = env();
    let project = Project::at(folder.path(), &env).unwrap();
    let native = of_file(&file, from.map(From::Profile), &project, &env).unwrap().0;
    check(&native.text(), &native, &project, &env).unwrap_or_else(|error| panic!("{error}\n{}", native.text()));
    let options = ReadOptions { working_dir: project.root().to_owned(), env: &env, ..ReadOptions::default() };
    let profile = from.unwrap_or_else(|| whose::profile(&file, &Document::open(&file).unwrap()).unwrap());
    let before = config::load(&file, &ReadOptions { profile, ..options.clone() }).unwrap().hooks;
    let after = config::parse("native.yaml", &native.text(), Format::Yaml, &options).unwrap().hooks;
    (before, native, after)
}

/// Every hook with its event and what its group selects.
fn flat(hooks: &HooksConfig) -> Vec<(String, String, gatehook_engine::HookDefinition)> {
    let mut all = Vec::new();
    for group in &hooks.groups {
        for hook in &group.hooks {
            let mut hook = hook.clone();
            // What is told apart by other words is the same hook.
            (hook.version, hook.ignored) = Default::default();
            let matcher = if group.matcher == "*" { String::new() } else { group.matcher.clone() };
            let matcher = if hook.profile.subject(group.event).is_some() { matcher } else { String::new() };
            all.push((group.event.name().to_owned(), matcher, hook));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

const OLLAMA_CLI: &str = r#"{
  "agent_models": {"code": {"provider": "ollama", "model": "m"}},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash|Write", "hooks": [
        {"type": "command", "command": "python3 $OLLAMA_PROJECT_DIR/policy.py", "timeout": 7},
        {"type": "command", "command": "sh  -c 'exit 0'", "shell": false}]},
      {"hooks": [{"type": "python", "module": "guard", "function": "on_pre_tool_use", "name": "guard"}]}],
    "Stop": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "set -e\nnotify-send 'done: #1'\n"}]}],
    "SessionEnd": [{"matcher": "", "hooks": [
      {"type": "webhook", "url": "http://127.0.0.1:9/x", "method": "put", "headers": {"X-Token": "${env.TOKEN}"}}]}]
  }
}"#;

const OLLM: &str = r#"{
  "name": "safety", "version": "2.1.0",
  "hooks": {
    "timeout": 1500, "trustWorkspace": true,
    "pre-tool-call": [
      {"id": "check", "name": "check", "description": "asks first\n# twice", "command": "sh", "args": ["-c", "exit 0"], "timeout": 30000},
      {"name": "yes: no", "command": "/bin/sh", "args": []}],
    "custom": [{"name": "c", "command": "sh", "enabled": true, "source": "user"}]
  }
}"#;

const DOCKER_AGENT: &str = r#"hooks:
  pre_tool_use:
    - matcher: "shell|edit_.*"
      hooks:
        - { type: command, command: ./validate.sh, timeout: 5, env: { TOKEN: "${env.TOKEN}", NONE: "${env.NONE}" } }
    - preempt_yolo: true
      matcher: shell
      hooks: [{ type: command, command: "exit 0", on_error: block, prompt: unused }]
  session_start:
    type: command
    command: |
      ./context.sh

      echo done
  turn_end: [{ type: builtin, command: redact_secrets, args: [a b] }]
"#;

/// An agent file of docker-agent's own.
const AGENT: &str = r#"models: {m: {provider: ollama, model: m}}
agents:
  root:
    model: m
    hooks:
      tool_guard: [{matcher: shell, hooks: [{type: command, command: ./guard.sh}]}]
      stop: [{type: model, model: ollama/m, prompt: "Is {{ .ToolName }} good?\n"}]
  other:
    model: m
    hooks: {stop: [{type: command, command: "true"}]}
"#;

#[test]
fn what_is_switched_off_is_named_and_left_out() {
    let text = r#"{"hooks": {"custom": [{"name": "on", "command": "sh"}, {"name": "off", "command": "sh", "enabled": false}]}}"#;
    let (_, native, after) = imported(".ollm/hooks/x.json", text, None);
    assert_eq!(native.notes, ["line 1: `off`, which is switched off by its own `enabled`"]);
    assert_eq!(flat(&after).len(), 1);
    let (_, native, _) = imported("agent.yaml", AGENT, None);
    assert!(native.notes.iter().any(|note| note.contains("agent `other`")), "{:?}", native.notes);
}

#[test]
fn a_hook_says_the_same_after_its_import() {
    for (name, text, from) in [
        (".ollama/settings.json", OLLAMA_CLI, None),
        (".ollm/hooks/safety.json", OLLM, None),
        ("agent.yaml", DOCKER_AGENT, Some(Profile::DockerAgent)),
        ("agent.yaml", AGENT, None),
        ("agent.yaml", &DOCKER_AGENT.replace("preempt_yolo: true\n      ", ""), Some(Profile::DockerAgentV158)),
    ] {
        let (before, native, after) = imported(name, text, from);
        assert_eq!(flat(&before), flat(&after), "{name} {from:?}\n{}", native.text());
    }
}

#[test]
fn what_has_no_place_is_named_with_its_reason() {
    let (_, native, _) = imported(".ollama/settings.json", OLLAMA_CLI, None);
    insta::assert_snapshot!(native.notes.join("\n"), @r"
    `agent_models`: about other things than hooks, which are ollama-cli's
    line 9: the matcher `Bash`, for `stop` has nothing that one selects
    ");
    let (_, native, _) = imported(".ollm/hooks/safety.json", OLLM, None);
    insta::assert_snapshot!(native.notes.join("\n"), @r"
    `trustWorkspace`: hooks of a project run once their owner approved them
    line 6: the version 2.1.0 of `check`, which will be told 1.0.0
    line 6: `id` of `check`, for a hook is known by its file, event and name
    line 7: the version 2.1.0 of `yes: no`, which will be told 1.0.0
    line 8: the version 2.1.0 of `c`, which will be told 1.0.0
    line 8: `source` of `c`, for a hook is known by its file, event and name
    ");
    for note in &native.notes {
        assert!(native.text().contains(&format!("# - {note}\n")), "{}", native.text());
    }
}

#[test]
fn variables_become_webhooks_and_no_header_is_copied() {
    let env = [
        ("OLLAMA_HOOK_PRE_INFERENCE_URL", "http://127.0.0.1:9/pre"),
        ("OLLAMA_HOOK_TIMEOUT", "1500ms"),
        ("OLLAMA_HOOK_ON_ERROR", "allow"),
        ("OLLAMA_HOOK_HEADERS", "Authorization: Bearer hunter2"),
        ("OLLAMA_HOOK_HEADER_AUTHORIZATION", "Bearer hunter2"),
    ];
    let env: Env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let native = Native::of_environment(&env).unwrap();
    assert!(!native.text().contains("hunter2"), "{}", native.text());
    let options = ReadOptions { env: &env, ..ReadOptions::default() };
    let after = config::parse("native.yaml", &native.text(), Format::Yaml, &options).unwrap().hooks;
    assert_eq!(flat(&config::ollama_env(&env).unwrap().unwrap()), flat(&after));
}

#[test]
fn a_file_is_known_by_its_events_and_its_folder() {
    for (name, text, expected) in [
        ("x.json", r#"{"hooks": {"PreToolUse": []}}"#, Some(Profile::OllamaCli)),
        ("x.json", r#"{"hooks": {"pre-tool-call": [], "custom": []}}"#, Some(Profile::Ollm)),
        (".ollm/hooks/x.json", r#"{"hooks": {"custom": []}}"#, Some(Profile::Ollm)),
        ("x.yaml", "agents: {root: {hooks: {stop: []}}}", Some(Profile::DockerAgent)),
        ("x.yaml", "settings: {hooks: {stop: []}}", Some(Profile::DockerAgent)),
        ("x.yaml", "stop: []", Some(Profile::DockerAgent)),
        ("x.yaml", "hooks: {stop: []}", None),
        ("x.json", r#"{"hooks": {"custom": []}}"#, None),
        ("x.json", "{}", None),
        (".claude/settings.json", r#"{"hooks": {"PreToolUse": []}}"#, None),
    ] {
        let document = Document::parse(name, text, Format::of_path(Path::new(name)).unwrap()).unwrap();
        assert_eq!(whose::profile(Path::new(name), &document).ok(), expected, "{name} {text}");
    }
}
