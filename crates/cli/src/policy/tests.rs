use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt as _;

use gatehook_engine::definition::Source;
use gatehook_engine::trust::Project;
use gatehook_events::{Event, Input};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::places::Place;

/// What managed, user, workspace and named files of these texts say together.
fn policy(texts: [&str; 4]) -> Result<Policy, PolicyError> {
    let folder = tempfile::tempdir().unwrap();
    let env = BTreeMap::from([("HOME".to_owned(), folder.path().display().to_string())]);
    let of = [("m", Source::Managed), ("u", Source::User), ("w", Source::Workspace), ("n", Source::User)];
    let places = of.into_iter().zip(texts).filter(|(_, text)| !text.is_empty()).map(|((name, source), text)| {
        let path = folder.path().join(format!("{name}.yaml"));
        std::fs::write(&path, text).unwrap();
        Place { source, is_named: name == "n", ..Place::named(&path) }
    });
    let places = places.collect();
    let project = Some(Project::at(folder.path(), &env).unwrap());
    Reading { env: &env, profile: Profile::Native, places, project, environment: false, agents: false }.policy()
}

fn count(policy: &Policy) -> Option<usize> {
    policy.said.max_concurrent_hooks.map(NonZeroUsize::get)
}

#[test]
fn of_settings_the_strongest_stands_and_a_project_can_only_tighten() {
    let said = |number| format!("max_concurrent_hooks: {number}");
    for (texts, expected) in [
        ([&*said(1), &said(2), "", &said(4)], 4),
        ([&said(1), &said(2), "", ""], 2),
        ([&said(3), "", &said(9), ""], 3),
        ([&said(3), "", &said(2), ""], 2),
        ([&said(3), "", &said(2), &said(7)], 7),
        (["{max_concurrent_hooks: 5, locked: [max_concurrent_hooks]}", &said(9), &said(2), &said(7)], 5),
    ] {
        assert_eq!(count(&policy(texts).unwrap()), Some(expected), "{texts:?}");
    }
}

#[test]
fn a_managed_file_that_others_could_have_written_stops_everything() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "hooks: {}").unwrap();
    let me = file.path().metadata().unwrap().uid();
    let error = |owner| {
        let place = Place { source: Source::Managed, owner: Some(owner), ..Place::named(file.path()) };
        let env = BTreeMap::new();
        let (profile, places) = (Profile::Native, vec![place]);
        let reading = Reading { env: &env, profile, places, project: None, environment: false, agents: false };
        reading.policy().err().map(|error| match error {
            PolicyError::Unusable { files, .. } => files[0].to_string(),
            error => panic!("{error}"),
        })
    };
    assert_eq!(error(me), None);
    let (said, path) = (error(me + 1).unwrap(), file.path().display().to_string());
    for word in [&path, "it belongs to user", "[writable_by_others]", &format!("chown root {path}")] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn what_is_locked_is_the_administrators_whatever_was_set_since() {
    let policy = policy(["{management: closed, locked: [management, workers]}", "management: pass", "", ""]).unwrap();
    let mut config = Config::default();
    policy.settings().clone().apply(&mut config);
    config.workers = 77;
    policy.lock(&mut config);
    assert_eq!(config.management, gatehook_gateway::config::Door::Closed);
    assert_eq!(config.workers, Config::default().workers);
}

#[test]
fn a_project_does_not_say_what_is_remembered_and_nobody_what_is_locked() {
    let said = |rows| format!("traces: {{max_rows: {rows}}}");
    let locked = "{traces: {max_rows: 1}, locked: [traces]}";
    for (texts, expected) in [
        (["", &*said(2), "traces: {max_rows: 3, enabled: false}", ""], 2),
        ([&said(1), &said(2), "", &said(4)], 4),
        ([locked, &said(2), "", &said(4)], 1),
    ] {
        let policy = policy(texts).unwrap();
        assert_eq!((policy.traces().max_rows, policy.traces().enabled), (Some(expected), None), "{texts:?}");
    }
}

#[test]
fn a_project_says_nothing_to_the_gateway_and_requires_and_locks_nothing() {
    let policy = policy(["", "", "{upstreams: {x: {url: 'http://192.0.2.1'}}, management: closed}", ""]).unwrap();
    assert!(!policy.settings().names_upstreams());
    for refused in ["required: {pre_tool_use: [x]}", "locked: [listen]"] {
        assert!(super::tests::policy(["", "", refused, ""]).is_err(), "{refused}");
    }
}

#[tokio::test]
async fn a_project_cannot_remove_loosen_or_disable_a_managed_hook() {
    let guard = "hooks: {pre_tool_use: [{name: guard, type: command, command: exit 2}]}";
    for workspace in [
        "hooks: {pre_tool_use: []}",
        "hooks: {pre_tool_use: [{name: guard, type: command, command: exit 0}]}",
        "hooks: {pre_tool_use: [{name: guard, type: command, command: exit 2, on_error: ignore}]}",
        "{defaults: {on_error: ignore, timeout: 1ms}, hooks: {}}",
        "{max_concurrent_hooks: 1, hooks: {}}",
    ] {
        let policy = policy([guard, "", workspace, ""]).unwrap();
        let executor = policy.executor(&BTreeMap::new()).unwrap();
        let cancel = CancellationToken::new();
        let verdict = executor.dispatch(Event::PreToolUse, &Input::default(), &cancel).await;
        assert!(!verdict.allowed, "{workspace}");
    }
    // What would switch all hooks off is no configuration, and nothing runs at all.
    for refused in ["hooks: {enabled: false}", "hooks: false", "hooks: {pre_tool_use: {enabled: false}}"] {
        assert!(policy([guard, "", refused, ""]).is_err(), "{refused}");
    }
}

#[test]
fn a_variable_switches_off_the_hooks_of_a_profile_but_for_managed_ones() {
    let hooks = "hooks: {stop: [{type: command, command: exit 0}]}";
    let mut judgement = policy([hooks, hooks, hooks, hooks]).unwrap().judgement;
    judgement.switch_off("native", "OLLAMA_HOOKS_ENABLED");
    let names: Vec<&str> = judgement.hooks.iter().map(|hook| hook.standing.name()).collect();
    assert_eq!(names, ["in_force", "switched_off", "switched_off", "switched_off"]);
}
