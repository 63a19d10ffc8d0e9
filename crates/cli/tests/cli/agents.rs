//! Agents, servers and rules of files: what is wrong with them, and what a project's need.

use serde_json::Value;

use crate::support::{Home, ran};

const TEAM: &str = "agents:
  root: {instruction: Work., toolsets: [{type: mcp, ref: clock}], sub_agents: [helper]}
  helper: {hooks: {stop: [{name: bell, type: command, command: sh bell.sh}]}}
mcp_servers: {clock: {command: sh, args: [clock.sh]}}
permissions: {allow: [read], deny: [write]}
";

fn rows(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let ran = ran(home.gatehook().args(arguments));
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    value.get("hooks").cloned().unwrap_or(value).as_array().unwrap().clone()
}

#[test]
fn a_file_with_agents_is_checked_and_its_hooks_are_listed() {
    let home = Home::new();
    home.file("team.yaml", TEAM);
    assert_eq!(ran(home.gatehook().args(["hooks", "check", "team.yaml"])).code, 0);
    let rows = rows(&home, &["hooks", "list", "--json", "team.yaml"]);
    assert_eq!((rows.len(), rows[0]["agent"].as_str()), (1, Some("helper")), "{rows:?}");
}

#[test]
fn a_name_that_stands_for_nothing_is_told_with_its_place() {
    let home = Home::new();
    home.file("team.yaml", &TEAM.replace("helper: {hooks", "other: {hooks"));
    let checked = ran(home.gatehook().args(["hooks", "check", "team.yaml"]));
    assert_ne!(checked.code, 0);
    assert!(checked.err.contains("team.yaml:2: `sub_agents` of the agent `root` names `helper`"), "{checked:?}");
}

#[test]
fn what_a_project_brings_waits_for_its_owner_and_changes_with_its_files() {
    let home = Home::new();
    home.file("gatehook.yaml", TEAM);
    home.file("bell.sh", "exit 0\n");
    home.file("clock.sh", "exit 0\n");
    let states = |home: &Home| -> Vec<(String, String)> {
        let rows = rows(home, &["hooks", "trust", "--json"]);
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        rows.iter().map(|row| (text(row, "name"), text(row, "state"))).collect()
    };
    let all = |state: &str| {
        [
            "bell",
            "the MCP server `clock`",
            "the agent `root`",
            "the agent `helper`",
            "`agent` and what `permissions` allow",
        ]
        .map(|name| (name.to_owned(), state.to_owned()))
        .to_vec()
    };
    assert_eq!(states(&home), all("not_trusted"));
    let listed = ran(home.gatehook().args(["hooks", "list"]));
    assert!(listed.err.contains("the MCP server `clock` is not used: not trusted"), "{listed:?}");
    let shown = ran(home.gatehook().args(["hooks", "trust"]));
    assert!(shown.out.contains("the MCP server `clock`, from the workspace"), "{shown:?}");
    assert!(shown.out.contains("clock.sh, 7 bytes"), "{shown:?}");
    assert_eq!(ran(home.gatehook().args(["hooks", "trust", "--yes"])).code, 0);
    assert_eq!(states(&home), all("approved"));
    // The server's program is covered, as a hook's is.
    home.file("clock.sh", "exit 1\n");
    let changed: Vec<String> =
        states(&home).into_iter().filter(|(_, state)| state == "changed").map(|(name, _)| name).collect();
    assert_eq!(changed, ["the MCP server `clock`"]);
}

#[test]
fn hooks_of_one_agent_do_not_run_for_everybody() {
    let home = Home::new();
    home.file("team.yaml", &TEAM.replace("sh bell.sh", "exit 2"));
    let tested = ran(home.gatehook().args(["hooks", "test", "stop", "--config", "team.yaml"]));
    assert!(tested.out.contains("no hook fits this stop"), "{tested:?}");
}
