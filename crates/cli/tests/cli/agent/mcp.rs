//! MCP servers, agents' files and docker-agent's through the real binary.

use serde_json::{Value, json};

use super::driven::{Driven, Drove, call, text};

/// A server that tells the time, or dies.
const CLOCK: &str = r#"
import json, sys
def answer(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        answer(number, {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                        "serverInfo": {"name": "clock", "version": "1"}})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"zone": {"type": "string"}}}
        answer(number, {"tools": [{"name": name, "inputSchema": schema} for name in ("now", "die")]})
    elif method == "tools/call":
        if params["name"] == "die":
            sys.exit("the spring is broken")
        answer(number, {"content": [{"type": "text", "text": "noon in " + params["arguments"].get("zone", "?")}]})
"#;

const SERVERS: &str = "mcp_servers: {clock: {command: python3, args: [clock.py]}}\n";

/// An agent with the clock, of the user's own configuration.
fn with_clock(script: impl IntoIterator<Item = Value>) -> Driven {
    Driven::new(script)
        .file("clock.py", CLOCK)
        .file("home/.config/gatehook/hooks.d/servers.yaml", SERVERS)
        .args(&["--allow", "mcp__clock__*"])
}

fn outputs(drove: &Drove) -> Vec<&str> {
    drove.results().iter().map(|result| result["output"].as_str().unwrap_or_default()).collect()
}

#[test]
fn a_servers_tool_is_offered_called_and_hooked() {
    let offered =
        json!({"match": "mcp__clock__now", "tool_calls": [{"name": "mcp__clock__now", "arguments": {"zone": "Bern"}}]});
    let drove = with_clock([offered, text("Done.")]).run("What time is it?");
    assert_eq!((outputs(&drove), drove.text()), (vec!["noon in Bern"], "Done."), "{}", drove.ran.shown());
    for event in ["tool_input_transform", "tool_guard", "pre_tool_use", "tool_response_transform", "post_tool_use"] {
        let told = drove.one(event);
        assert_eq!(told["tool_name"], "mcp__clock__now", "{event}");
        assert_eq!(told["tool_input"], json!({"zone": "Bern"}), "{event}");
    }
    assert_eq!(drove.one("tool_guard")["tool_category"], "mcp");
    assert_eq!(drove.one("post_tool_use")["tool_response"], "noon in Bern");
    assert!(drove.asked().contains("noon in Bern"));
}

#[test]
fn hooks_rewrite_and_deny_a_servers_tool_as_any_other() {
    let script = || [call("mcp__clock__now", json!({"zone": "Bern"})), text("Done.")];
    let rewrite = json!({"hook_specific_output": {"updated_input": {"zone": "Rome"}}});
    let drove = with_clock(script()).answers("tool_input_transform", rewrite).run("What time is it?");
    assert_eq!(outputs(&drove), ["noon in Rome"], "{}", drove.ran.shown());
    let drove =
        with_clock(script()).answers("tool_guard", json!({"decision": "block", "reason": "no clocks"})).run("?");
    assert!(drove.asked().contains("no clocks") && !drove.asked().contains("noon"), "{}", drove.ran.shown());
}

#[test]
fn a_server_that_dies_fails_its_call_and_the_session_goes_on() {
    let script = [call("mcp__clock__die", json!({})), call("mcp__clock__now", json!({"zone": "Bern"})), text("Done.")];
    let drove = with_clock(script).run("What time is it?");
    let died = "the MCP server `clock`: it ended while it worked on this call: the spring is broken";
    assert_eq!(outputs(&drove), [died, "noon in Bern"], "{}", drove.ran.shown());
    assert_eq!((drove.text(), drove.results()[0]["error"].as_str()), ("Done.", Some("network")));
    assert_eq!(drove.notices(), ["the MCP server `clock`: it has ended: the spring is broken"]);
}

#[test]
fn a_server_that_does_not_start_is_told_and_the_agent_works_without() {
    let drove = Driven::new([text("Hello.")])
        .file("home/.config/gatehook/hooks.d/servers.yaml", "mcp_servers: {clock: {command: no-such-clock}}\n")
        .run("Say hello.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Hello."), "{}", drove.ran.shown());
    let expected = "the MCP server `clock`: it cannot be started: `no-such-clock` is nowhere on PATH";
    assert_eq!(drove.notices(), [expected]);
}

#[test]
fn a_projects_server_runs_once_its_owner_approved_it_and_not_after_a_change() {
    let driven = Driven::new([call("mcp__clock__now", json!({"zone": "Bern"})), text("Done.")])
        .args(&["--allow", "mcp__clock__*"])
        .file("clock.py", CLOCK)
        .file("gatehook.yaml", SERVERS);
    let run = |driven: &Driven| driven.run_again(&["run", "What time is it?", "--json"]);
    let drove = run(&driven);
    assert!(drove.ran.err.contains("the MCP server `clock` is not used: not trusted"), "{}", drove.ran.shown());
    assert!(outputs(&drove)[0].contains("There is no tool \"mcp__clock__now\""), "{}", drove.ran.shown());
    assert_eq!(driven.home.run(&["hooks", "trust", "--yes"]).code, 0);
    let drove = run(&driven);
    assert_eq!(outputs(&drove), ["noon in Bern"], "{}", drove.ran.shown());
    driven.home.file("clock.py", &CLOCK.replace("noon", "midnight"));
    let drove = run(&driven);
    assert!(drove.ran.err.contains("is not used: changed: clock.py"), "{}", drove.ran.shown());
}

#[test]
fn an_agent_has_its_own_tools_hooks_and_rules() {
    let team = "agents:
  root:
    instruction: Lead with care.
    toolsets: [{type: filesystem, tools: [read]}]
    permissions: {deny: ['read:path=secret*']}
    hooks: {turn_start: [{type: command, command: 'echo the moon is full'}]}
  other:
    hooks: {turn_start: [{type: command, command: 'echo the sun is out'}]}
";
    let script = [call("read", json!({"path": "secret.txt"})), call("write", json!({})), text("Done.")];
    let drove = Driven::new(script)
        .file("secret.txt", "hush")
        .file("team.yaml", team)
        .args(&["--config", "team.yaml", "--mode", "autonomous"])
        .run("Go.");
    let asked = drove.asked();
    assert!(asked.contains("Lead with care.") && asked.contains("the moon is full"), "{asked}");
    assert!(!asked.contains("the sun is out") && !asked.contains("hush"), "{asked}");
    assert!(asked.contains("denied by permissions configuration"), "{asked}");
    assert!(asked.contains("There is no tool") && asked.contains("write"), "{asked}");
}

#[test]
fn docker_agents_file_runs_as_it_is_with_its_own_names() {
    let file = |hooks: &str| {
        format!(
            "version: '7'\nagents:\n  root:\n    model: openai/gpt-4o\n    description: leads\n    instruction: Lead.\n    \
             toolsets: [{{type: shell}}]\n{hooks}permissions: {{allow: ['shell:cmd=echo*']}}\n"
        )
    };
    let script = || [call("shell", json!({"cmd": "echo h''i"})), text("Done.")];
    let run = |hooks: &str| {
        let args = ["--config", "agent.yaml"];
        Driven::new(script()).file("agent.yaml", &file(hooks)).args(&args).run("Go.")
    };
    let drove = run("");
    assert!(outputs(&drove)[0].contains("hi"), "{}", drove.ran.shown());
    let guarded = "    hooks:\n      tool_guard:\n        - matcher: shell\n          hooks: [{type: command, command: \
                   'echo no shells >&2; exit 2'}]\n";
    let drove = run(guarded);
    assert!(drove.asked().contains("no shells"), "{}", drove.ran.shown());
}
