//! Configurations that change while the gateway runs.

use rustix::process::Signal;

use crate::support::{Home, Serve};

fn blocking(word: &str) -> String {
    format!("hooks: {{ pre_inference: [{{ type: builtin, command: block_patterns, args: [{word}] }}] }}\n")
}

#[test]
fn a_changed_file_comes_into_force_and_a_bad_one_does_not() {
    let home = Home::new();
    home.file("policy.yaml", &blocking("apple"));
    let mut serve = Serve::start(&home, &["--config", "policy.yaml", "--upstream", "replay:"]);
    assert_eq!((serve.chat("apple").0, serve.chat("pear").0), (400, 200));

    home.file("policy.yaml", &blocking("pear"));
    serve.line("the changed configuration is in force");
    assert_eq!((serve.chat("apple").0, serve.chat("pear").0), (200, 400));

    home.file("policy.yaml", "# This line is fine.\nhooks:\n  pre_inferense: []\n");
    let line = serve.line("the changed configuration is refused");
    assert!(line.contains("policy.yaml:3:3: there is no event `pre_inferense`"), "{line}");
    assert!(line.contains("did you mean `pre_inference`?"), "{line}");
    assert_eq!((serve.chat("apple").0, serve.chat("pear").0), (200, 400));
    let (_, metrics) = serve.get("/metrics");
    let refused = metrics.lines().find(|line| line.starts_with("gatehook_") && line.contains("refused"));
    assert!(refused.is_some_and(|line| line.ends_with(" 1")), "{refused:?}");

    home.file("policy.yaml", &blocking("plum"));
    serve.line("the changed configuration is in force");
    assert_eq!((serve.chat("pear").0, serve.chat("plum").0), (200, 400));
}

#[test]
fn a_file_that_was_cut_off_opens_nothing() {
    let home = Home::new();
    home.file("policy.yaml", &blocking("apple"));
    let mut serve = Serve::start(&home, &["--config", "policy.yaml", "--upstream", "replay:"]);
    home.file("policy.yaml", "");
    let line = serve.line("the changed configuration is refused");
    assert!(line.contains("the file is empty"), "{line}");
    assert_eq!(serve.chat("apple").0, 400);
}

#[test]
fn a_file_that_appears_in_the_users_folder_comes_into_force() {
    let home = Home::new();
    home.file("home/.config/gatehook/hooks.d/10-first.yaml", &blocking("apple"));
    let mut serve = Serve::start(&home, &["--upstream", "replay:"]);
    assert_eq!((serve.chat("apple").0, serve.chat("pear").0), (400, 200));
    home.file("home/.config/gatehook/hooks.d/20-second.yaml", &blocking("pear"));
    serve.line("the changed configuration is in force");
    assert_eq!((serve.chat("apple").0, serve.chat("pear").0), (400, 400));
}

#[test]
fn a_hangup_reads_the_configuration_at_once() {
    let home = Home::new();
    home.file("policy.yaml", &blocking("apple"));
    let mut serve = Serve::start(&home, &["--config", "policy.yaml", "--upstream", "replay:"]);
    home.file("policy.yaml", &blocking("pear"));
    serve.signal(Signal::HUP);
    serve.line("the changed configuration is in force");
    assert_eq!(serve.chat("pear").0, 400);
}
