//! Skills: the model follows one, or the user calls one; its own hooks while it is followed.

use serde_json::{Value, json};

use super::driven::{Driven, call, text};

const PLAIN: &str = "---\nname: deploy\ndescription: Deploys the site.\n---\nBuild first, then copy.\n";
const GUARDED: &str = "---\ndescription: Reads nothing.\nhooks:\n  pre_tool_use:\n    - {matcher: read, hooks: \
                       [{type: command, command: sh guard.sh}]}\n---\nThink instead.\n";
const GUARD: &str = "echo 'not while this skill is followed' >&2; exit 2\n";

fn skill() -> Value {
    call("skill", json!({"name": "deploy", "args": "to staging"}))
}

fn deploys(script: impl IntoIterator<Item = Value>) -> Driven {
    Driven::new(script).file(".gatehook/skills/deploy/SKILL.md", PLAIN)
}

/// A skill of the user's with a guard beside it.
fn guarded(script: impl IntoIterator<Item = Value>) -> Driven {
    Driven::new(script)
        .file("home/.config/gatehook/skills/quiet/SKILL.md", GUARDED)
        .file("home/.config/gatehook/skills/quiet/guard.sh", GUARD)
        .file("a.txt", "the file's text")
}

#[test]
fn the_model_follows_a_skill_and_hooks_hear_of_it() {
    let drove = deploys([skill(), text("Done.")]).run("Deploy it.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}", drove.ran.shown());
    let told = drove.one("skill_trigger");
    assert_eq!((&told["skill_name"], &told["skill_args"]), (&json!("deploy"), &json!("to staging")));
    assert!(told["skill_path"].as_str().unwrap().ends_with(".gatehook/skills/deploy/SKILL.md"), "{told}");
    assert!(drove.asked().contains("Build first, then copy.") && drove.asked().contains("Arguments: to staging"));
    assert_eq!(drove.one("post_tool_use")["tool_name"], "skill");
}

#[test]
fn the_user_calls_a_skill_at_the_beginning_of_a_prompt() {
    let drove = deploys([text("Done.")]).run("/deploy to staging");
    assert_eq!(drove.one("skill_trigger")["skill_args"], "to staging", "{}", drove.ran.shown());
    assert_eq!(drove.one("user_prompt_submit")["prompt"], "/deploy to staging");
    assert!(drove.asked().contains("Build first, then copy."), "{}", drove.asked());
    let other = deploys([text("Done.")]).run("/deployed is no skill");
    assert!(other.of("skill_trigger").is_empty() && !other.asked().contains("Build first"));
}

#[test]
fn a_block_refuses_it_and_a_rewrite_is_what_it_is_used_with() {
    let block = || json!({"decision": "block", "reason": "no deploys today"});
    let called = deploys([text("Done.")]).answers("skill_trigger", block()).run("/deploy now");
    assert_eq!((called.ran.code, called.reason()), (1, "hook_blocked"), "{}", called.ran.shown());
    assert!(called.notices().iter().any(|said| said.contains("no deploys today")));
    let wanted = deploys([skill(), text("Done.")]).answers("skill_trigger", block()).run("Deploy it.");
    assert_eq!((wanted.ran.code, &wanted.results()[0]["error"]), (0, &json!("permission")), "{}", wanted.ran.shown());
    assert!(wanted.asked().contains("no deploys today") && !wanted.asked().contains("Build first, then copy."));
    let specific = json!({"updated_input": {"skill_args": "to nowhere"}, "additional_context": "the moon is full"});
    let answer = json!({"hook_specific_output": specific});
    for (drove, word) in [
        (
            deploys([text("Done.")]).answers("skill_trigger", answer.clone()).run("/deploy to staging"),
            "/deploy to nowhere",
        ),
        (deploys([skill(), text("Done.")]).answers("skill_trigger", answer).run("Go."), "Arguments: to nowhere"),
    ] {
        assert!(drove.asked().contains(word) && drove.asked().contains("the moon is full"), "{}", drove.asked());
    }
}

#[test]
fn a_skills_hooks_are_in_force_until_the_agent_is_done() {
    let read = || call("read", json!({"path": "a.txt"}));
    let wants = || call("skill", json!({"name": "quiet"}));
    let without = guarded([read(), text("Done.")]).run("Read.");
    assert_eq!(without.results()[0]["error"], Value::Null, "{}", without.ran.shown());
    for drove in [
        guarded([wants(), read(), text("Done.")]).run("Be quiet, and read."),
        guarded([read(), text("Done.")]).run("/quiet and read"),
        // A subagent works under the same hooks.
        guarded([wants(), call("task", json!({"prompt": "Read."})), read(), text("Sub."), text("Done.")]).run("Go."),
    ] {
        let shown = drove.ran.shown();
        assert!(shown.contains("not while this skill is followed"), "{shown}");
        assert!(!shown.contains("the file's text"), "{shown}");
    }
}

#[test]
fn hooks_of_a_projects_skill_need_trust_and_the_skill_is_there_without() {
    let script = || [text("Done.")];
    let project = |event: &str| {
        let text = format!(
            "---\ndescription: x\nevent: {event}\nhooks: [{{type: command, command: sh guard.sh}}]\n---\nDo it.\n"
        );
        Driven::new(script()).file(".agents/skills/s/SKILL.md", &text).file(".agents/skills/s/guard.sh", GUARD)
    };
    let driven = project("skill_trigger");
    let drove = driven.run_again(&["run", "/s", "--json"]);
    assert_eq!(drove.ran.code, 0, "{}", drove.ran.shown());
    assert!(
        drove.notices().iter().any(|said| said.contains("without its hooks: not trusted")),
        "{:?}",
        drove.notices()
    );
    let listed = driven.home.run(&["hooks", "list"]);
    assert!(listed.out.contains("not trusted"), "{}", listed.shown());
    let trusted = driven.home.run(&["hooks", "trust", "--yes"]);
    assert!(trusted.code == 0 && trusted.out.contains("guard.sh"), "{}", trusted.shown());
    let listed = driven.home.run(&["hooks", "list"]);
    assert!(listed.out.contains("in force while s is followed"), "{}", listed.shown());
    let drove = driven.run_again(&["run", "/s", "--json"]);
    assert_eq!((drove.ran.code, drove.reason()), (1, "hook_blocked"), "{}", drove.ran.shown());
    // It is not in force where the skill is not followed.
    assert_eq!(driven.home.run(&["fire", "skill_trigger", "--set", "skill_name=s"]).code, 0);
    // What was approved is what runs.
    driven.home.file(".agents/skills/s/guard.sh", "exit 0\n");
    let changed = driven.run_again(&["run", "/s", "--json"]);
    assert!(changed.notices().iter().any(|said| said.contains("changed: .agents/skills/s/guard.sh")));
}

#[test]
fn a_skill_that_cannot_be_read_is_named_and_keeps_nobody_from_work() {
    let drove = Driven::new([text("Done.")])
        .file(".gatehook/skills/bad/SKILL.md", "---\nname: bad\nhooks: {stopp: []}\n---\n")
        .file("home/.agents/skills/deploy/SKILL.md", PLAIN)
        .file(".ollama/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Another.\n---\nOf the project.\n")
        .run("/deploy");
    assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}", drove.ran.shown());
    for part in [".gatehook/skills/bad/SKILL.md:3: there is no event `stopp`", "`description` must be set"] {
        assert!(drove.ran.err.contains(part), "{part}: {}", drove.ran.err);
    }
    // The user's goes before the project's.
    assert!(drove.asked().contains("Build first") && !drove.asked().contains("Of the project"));
    assert!(drove.ran.err.contains("goes before this one"), "{}", drove.ran.err);
}
