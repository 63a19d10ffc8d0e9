//! `gatehook serve` up to the moment it serves, or why it does not.

use gatehook_engine::config::OLLAMA_VARIABLES;

use crate::support::{Home, Serve, ran, shows};

const POLICY: &str = r#"upstreams:
  local: { kind: openai, url: "replay:" }
hooks:
  pre_inference:
    - { type: builtin, command: redact_secrets }
  post_inference:
    - { type: builtin, command: redact_secrets }
  pre_tool_use:
    - { hooks: [{ type: builtin, command: redact_secrets }] }
"#;

#[test]
fn the_help_says_every_flag_and_variable() {
    let ran = Home::new().run(&["serve", "--help"]);
    for variable in OLLAMA_VARIABLES {
        assert!(ran.out.contains(variable.name), "{} is missing", variable.name);
    }
    shows!("serve_help", ran);
}

#[test]
fn the_main_help_says_every_command_and_exit_code() {
    shows!("help", Home::new().run(&["--help"]));
}

#[test]
fn bad_variables_are_all_named() {
    let home = Home::new();
    let ran = ran(home.gatehook().arg("serve").envs([
        ("OLLAMA_HOOK_PRE_INFERENCE_URL", "ftp://127.0.0.1"),
        ("OLLAMA_HOOK_POST_INFERENCE_URL", "http://user:hunter2@"),
        ("OLLAMA_HOOK_TIMEOUT", "5"),
        ("OLLAMA_HOOK_ON_ERROR", "denny"),
        ("OLLAMA_HOOK_HEADERS", "Authorization hunter2"),
    ]));
    assert!(!ran.err.contains("hunter2"), "a secret is shown: {}", ran.err);
    shows!("serve_bad_variables", ran);
}

#[test]
fn a_bad_file_is_shown_with_its_place() {
    let home = Home::new();
    home.file("bad.yaml", "hooks:\n  pre_inferense: []\nlimits: { idle: soon }\n");
    shows!("serve_bad_file", home.run(&["serve", "--config", "bad.yaml"]));
}

#[test]
fn a_bad_file_of_the_home_directory_stops_it_too() {
    let home = Home::new();
    home.file("home/.config/gatehook/hooks.d/bad.yaml", "hooks: 3\n");
    let ran = home.run(&["serve"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("hooks.d/bad.yaml:1:8"), "{}", ran.err);
}

#[test]
fn a_bad_start_is_a_configuration_error() {
    let home = Home::new();
    for (args, says) in [
        (&["--upstream", "localhost"][..], "upstream `default`: `localhost` cannot be called"),
        (&["--upstream", "replay:none.jsonl"], "none.jsonl cannot be read"),
        (&["--listen", "0.0.0.0:0"], "can be reached from outside and no key is asked for"),
    ] {
        for check in [&[][..], &["--check"]] {
            let ran = home.run(&[&["serve"], args, check].concat());
            assert_eq!(ran.code, 3, "{args:?} {check:?}: {}", ran.shown());
            assert!(ran.err.contains(says), "{args:?} {check:?}: {}", ran.err);
        }
    }
    for (variable, value) in [("GATEHOOK_LOG", "gatehook=loud"), ("GATEHOOK_LISTEN", "here")] {
        let ran = ran(home.gatehook().arg("serve").env(variable, value));
        assert_eq!(ran.code, 3, "{}", ran.shown());
        assert!(ran.err.contains(variable), "{}", ran.err);
    }
}

#[test]
fn a_variable_that_is_empty_is_not_set() {
    let home = Home::new();
    let mut command = home.gatehook();
    command.args(["serve", "--check"]);
    let plain = ran(&mut command).out;
    for variable in OLLAMA_VARIABLES.iter().map(|variable| variable.name).chain([
        "OLLAMA_HOST",
        "OLLAMA_ORIGINS",
        "GATEHOOK_CONFIG",
        "GATEHOOK_LISTEN",
        "GATEHOOK_LOG",
        "XDG_CONFIG_HOME",
    ]) {
        command.env(variable, "");
    }
    let ran = ran(&mut command);
    assert_eq!((ran.code, ran.out.as_str()), (0, plain.as_str()), "{}", ran.shown());
}

#[test]
fn wrong_flags_are_wrong_usage() {
    let home = Home::new();
    for args in
        [&["--listen", "here"][..], &["--workers", "many"], &["--lisen", "127.0.0.1:0"], &["--upstream-kind", "x"]]
    {
        assert_eq!(home.run(&[&["serve"], args].concat()).code, 2, "{args:?}");
    }
}

#[test]
fn a_taken_address_is_the_listeners_fault() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = Home::new().run(&["serve", "--upstream", "replay:", "--listen", &address]);
    assert_eq!(ran.code, 4, "{}", ran.shown());
    assert!(ran.err.contains(&format!("cannot listen on {address}")), "{}", ran.err);
}

#[test]
fn a_check_says_what_the_configuration_means() {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    shows!("serve_check", home.run(&["serve", "--check", "--config", "policy.yaml"]));
}

#[test]
fn nothing_is_read_from_the_current_folder() {
    let home = Home::new();
    home.file("gatehook.yaml", "hooks: 3\n");
    home.file(".gatehook/gatehook.yaml", "hooks: 3\n");
    let ran = home.run(&["serve", "--check"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(!ran.out.contains("file"), "{}", ran.out);
}

#[test]
fn flags_win_over_variables_and_variables_over_files() {
    let home = Home::new();
    home.file("policy.yaml", "listen: { address: \"127.0.0.1:1\" }\n");
    let check = |variable: bool, flag: bool| {
        let mut command = home.gatehook();
        command.args(["serve", "--check", "--config", "policy.yaml"]);
        if variable {
            command.env("GATEHOOK_LISTEN", "127.0.0.1:2").env("OLLAMA_HOST", "two:2");
        }
        if flag {
            command.args(["--listen", "127.0.0.1:3", "--upstream", "http://three:3"]);
        }
        ran(&mut command).out
    };
    for (variable, flag, listens, calls) in [
        (false, false, "127.0.0.1:1", "http://127.0.0.1:11434"),
        (true, false, "127.0.0.1:2", "http://two:2"),
        (true, true, "127.0.0.1:3", "http://three:3"),
    ] {
        let out = check(variable, flag);
        assert!(out.contains(listens) && out.contains(calls), "{variable} {flag}: {out}");
    }
}

#[test]
fn a_later_file_has_the_last_word_on_settings_and_hooks_add_up() {
    let home = Home::new();
    home.file("home/.config/gatehook/gatehook.yaml", &POLICY.replace("local:", "of_user:"));
    home.file("policy.yaml", POLICY);
    let ran = home.run(&["serve", "--check", "--config", "policy.yaml"]);
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("hook")).count(), 6, "{}", ran.out);
    assert!(ran.out.contains("local") && !ran.out.contains("of_user"), "{}", ran.out);
}

#[test]
fn at_the_start_it_says_what_no_hook_will_see() {
    let home = Home::new();
    let policy = "upstreams: { local: { url: 'replay:' } }\nhooks:\n  post_inference:\n    - { name: guard, type: command, \
                  command: exit 0, stream: { mode: window } }\n  session_start: [{ type: command, command: exit 0 }]\n";
    home.file("policy.yaml", policy);
    let mut serve = Serve::start(&home, &["--config", "policy.yaml"]);
    serve.line("guard judges streams by the window: that bounds what leaks before a denial, but excludes no leak");
    serve.line("hooks on session_start never run here");
}
