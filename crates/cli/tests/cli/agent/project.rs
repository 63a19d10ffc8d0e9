//! What an agent finds in its project: context files, and what setup hooks prepared.

use serde_json::{Value, json};

use super::driven::{Driven, Drove, call, text};

fn says(event: &'static str, answer: &str) -> Driven {
    Driven::new([text("Done.")]).answers(event, serde_json::from_str(answer).unwrap_or(Value::Null))
}

#[test]
fn context_files_are_told_to_the_model_and_their_names_to_hooks() {
    let drove = Driven::new([text("Done.")])
        .file(".git/HEAD", "ref: refs/heads/feature/x\n")
        .file("AGENTS.md", "Speak plainly.")
        .file("OLLAMA.md", "Test first.")
        .file("sub/CLAUDE.md", "Of a folder below.")
        .run("Go.");
    for words in ["Speak plainly.", "Test first."] {
        assert!(drove.asked().contains(words), "{words}: {}", drove.asked());
    }
    assert!(!drove.asked().contains("Of a folder below."));
    for event in ["setup", "session_start", "stop"] {
        let told = drove.one(event);
        assert_eq!(
            (&told["context_files"], &told["branch"]),
            (&json!(["AGENTS.md", "OLLAMA.md"]), &json!("feature/x"))
        );
    }
}

#[test]
fn a_context_file_that_leads_out_of_the_repository_is_not_read() {
    let driven = Driven::new([text("Done.")]).file(".git/HEAD", "ref: refs/heads/main\n");
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), "somebody else's secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), driven.home.path().join("AGENTS.md")).unwrap();
    assert!(!driven.run("Go.").asked().contains("secret"));
}

#[test]
fn a_project_is_prepared_when_an_agent_first_works_in_it_and_after_a_day() {
    let driven = says("setup", r#"{"hook_specific_output": {"additional_context": "the database is up"}}"#);
    let first = driven.run_again(&["run", "Go.", "--json"]);
    let told = first.one("setup");
    assert_eq!((&told["trigger"], &told["agent_name"]), (&json!("init"), &json!("root")), "{}", first.ran.shown());
    assert_eq!(told["session_id"], first.one("session_start")["session_id"]);
    assert_eq!(first.events()[..2], ["setup", "session_start"]);
    assert!(first.asked().contains("the database is up"), "{}", first.asked());
    let setups = |drove: &Drove| drove.of("setup").iter().map(|told| told["trigger"].clone()).collect::<Vec<_>>();
    assert_eq!(setups(&driven.run_again(&["run", "Go.", "--json"])), [json!("init")]);
    // A day goes by.
    let path = "home/.local/state/gatehook/variables.json";
    let mut kept: Value = serde_json::from_slice(&std::fs::read(driven.home.path().join(path)).unwrap()).unwrap();
    kept["prepared"].as_object_mut().unwrap().values_mut().for_each(|at| *at = json!(at.as_u64().unwrap() - 86_401));
    driven.home.file(path, &kept.to_string());
    assert_eq!(setups(&driven.run_again(&["run", "Go.", "--json"])), [json!("init"), json!("maintenance")]);
    assert_eq!(setups(&driven.run_again(&["run", "Go.", "--json"])), [json!("init"), json!("maintenance")]);
}

/// An agent whose setup hook does this, and whose model looks at its environment.
fn prepared_by(line: &str) -> Driven {
    let script = [call("bash", json!({"command": "echo region=$REGION"})), text("Done.")];
    let hooks = format!(
        "hooks:\n  setup: [{{type: command, command: {}}}]\n  stop: [{{type: command, command: 'env > home/env.txt'}}]\n",
        json!(line)
    );
    Driven::new(script)
        .silent()
        .args(&["--mode", "autonomous", "--config", "home/setup.yaml"])
        .file("home/setup.yaml", &hooks)
}

#[test]
fn what_a_setup_hook_writes_is_in_the_environment_of_tools_and_of_later_hooks() {
    let driven = prepared_by("echo REGION=eu >> $GATEHOOK_ENV_FILE");
    let drove = driven.run_again(&["run", "Go.", "--json"]);
    assert!(drove.results()[0]["output"].as_str().unwrap().contains("region=eu"), "{}", drove.ran.shown());
    let env = std::fs::read_to_string(driven.home.path().join("home/env.txt")).unwrap();
    let session = drove.reports[0]["session_id"].as_str().unwrap();
    let folder = driven.home.path().canonicalize().unwrap();
    for line in [
        "REGION=eu".to_owned(),
        format!("GATEHOOK_SESSION_ID={session}"),
        format!("GATEHOOK_PROJECT_DIR={}", folder.display()),
    ] {
        assert!(env.lines().any(|known| known == line), "{line}: {env}");
    }
    // The next session has it too, without a setup.
    let again = driven.run_again(&["run", "Go.", "--json"]);
    assert!(again.results()[0]["output"].as_str().unwrap().contains("region=eu"), "{}", again.ran.shown());
}

#[test]
fn what_a_setup_hook_writes_amiss_is_told_and_asked_for_again() {
    let driven = prepared_by("echo PATH=/evil >> $GATEHOOK_ENV_FILE; echo x >> home/ran.txt");
    for times in 1..=2 {
        let drove = driven.run_again(&["run", "Go.", "--json"]);
        assert_eq!(drove.ran.code, 0, "{}", drove.ran.shown());
        assert!(drove.ran.err.contains("`PATH` is not for hooks to set"), "{}", drove.ran.err);
        let ran = std::fs::read_to_string(driven.home.path().join("home/ran.txt")).unwrap();
        assert_eq!(ran.lines().count(), times);
    }
}
