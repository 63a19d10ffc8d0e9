use std::collections::BTreeMap;

use gatehook_engine::config::{ConfigError, Diagnostics, Document, Format, ReadOptions};
use gatehook_engine::definition::{EnvPolicy, Source};
use gatehook_engine::events::{Event, Profile};

use super::*;
use crate::mcp::{Naming, Reached};

fn read_as(text: &str, options: &ReadOptions<'_>) -> Result<TeamFile, ConfigError> {
    let document = Document::parse("team.yaml", text, Format::Yaml)?;
    let diagnostics = Diagnostics::new();
    let file = read(&document, options, &diagnostics);
    diagnostics.finish(&document, file)
}

fn file(text: &str) -> TeamFile {
    read_as(text, &ReadOptions::default()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn fault(text: &str) -> String {
    read_as(text, &ReadOptions::default()).map(|file| panic!("{text}\n{file:?}")).unwrap_err().to_string()
}

fn of(source: Source, text: &str) -> TeamFile {
    read_as(text, &ReadOptions { source, ..ReadOptions::default() }).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

#[test]
fn agents_are_read_from_a_mapping_or_a_list() {
    let mapping = file("agents: {root: {model: ollama/a}, other: {description: helps}}");
    let list = file("agents: [{name: root, model: ollama/a}, {name: other, description: helps}]");
    let facts = |file: &TeamFile| -> Vec<String> {
        file.agents.iter().map(|it| format!("{} {:?} {}", it.name, it.model, it.description)).collect()
    };
    assert_eq!(facts(&mapping), facts(&list));
    assert_eq!(mapping.agents.len(), 2);
}

#[test]
fn all_that_an_agent_says_is_read() {
    let file = file(
        "agents:
  root:
    model: anthropic/claude
    description: leads
    instruction: [Be short., Be right.]
    welcome_message: Hello
    toolsets:
      - {type: filesystem, readonly: true, tools: [read, grep]}
      - {type: mcp, ref: time, instruction: Ask it.}
    sub_agents: [helper]
    handoffs: [helper]
    commands: {fix: Mend it., plan: {description: plans, instruction: Plan it., agent: helper}}
    max_iterations: 7
    max_consecutive_tool_calls: 3
    mode: balanced
    permissions: {allow: [read], ask: ['bash'], deny: ['write:path=/etc/*']}
    add_date: true
    add_environment_info: true
    add_prompt_files: [AGENTS.md]
    redact_secrets: true
    readonly: true
    skills: [one, two]
    session_compaction: false
    compaction_threshold: 0.5
    compaction_model: ollama/small
    hooks: {stop: [{type: command, command: 'true'}]}
  helper: {}
mcp_servers: {time: {command: uvx, args: [mcp-server-time]}}",
    );
    let root = &file.agents[0];
    assert_eq!(&*root.instruction, "Be short.\n\nBe right.");
    assert_eq!(root.welcome.as_deref(), Some("Hello"));
    let only = vec!["read".to_owned(), "grep".to_owned()];
    let filesystem = Toolset { tools: Tools::Builtin("filesystem"), only, read_only: true, instruction: None };
    let instruction = Some("Ask it.".into());
    let time = Toolset { tools: Tools::Server("time".into()), only: vec![], read_only: false, instruction };
    assert_eq!(root.toolsets, Some(vec![filesystem, time]));
    assert_eq!((&*root.sub_agents, &*root.handoffs), (&["helper".into()][..], &["helper".into()][..]));
    assert_eq!(root.commands["fix"].instruction, "Mend it.");
    assert_eq!(root.commands["plan"].agent.as_deref(), Some("helper"));
    assert_eq!((root.max_iterations, root.max_consecutive_tool_calls), (Some(7), Some(3)));
    assert_eq!(root.mode, Some(SafetyMode::Balanced));
    assert_eq!(root.permissions, Rules::parse(["read"], ["bash"], ["write:path=/etc/*"]).unwrap());
    assert_eq!(root.skills, Skills::Only(vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!((root.compacts, root.compaction_threshold), (false, Some(0.5)));
    assert_eq!(root.compaction_model.as_deref(), Some("ollama/small"));
    assert!(root.read_only);
    let events: Vec<Event> = root.hooks.groups.iter().map(|group| group.event).collect();
    let expected = [
        Event::Stop,
        Event::TurnStart,
        Event::SessionStart,
        Event::TurnStart,
        Event::ToolInputTransform,
        Event::BeforeLlmCall,
        Event::ToolResponseTransform,
    ];
    assert_eq!(events, expected);
    let agents = root.hooks.groups.iter().flat_map(|group| &group.hooks).map(|hook| hook.origin.agent.as_deref());
    assert!(agents.collect::<Vec<_>>().iter().all(|agent| *agent == Some("root")));
    assert_eq!(file.agents[1].toolsets, None);
    assert_eq!(Team::of([file]).unwrap().root().unwrap().name, "root".into());
}

#[test]
fn servers_are_programs_or_addresses_with_what_variables_hold() {
    let env = BTreeMap::from([("TOKEN".to_owned(), "secret".to_owned())]);
    let options = ReadOptions { env: &env, ..ReadOptions::default() };
    let text = "mcp_servers:
  a: {command: ./server, args: [x], env: {KEY: '${env.TOKEN}!'}, env_policy: inherit, timeout: 5s, tools: [one]}
  b: {url: 'https://example.org/mcp', headers: {Authorization: 'Bearer ${env.TOKEN}'}}
  c: {command: gone, enabled: false}";
    let servers = read_as(text, &options).unwrap().servers;
    assert_eq!(servers.len(), 2);
    assert_eq!(servers[0].timeout, std::time::Duration::from_secs(5));
    assert_eq!(servers[0].naming, Naming::Server);
    let expected = Reached::Program {
        command: "./server".to_owned(),
        args: vec!["x".to_owned()],
        env: BTreeMap::from([("KEY".to_owned(), "secret!".to_owned())]),
        env_policy: EnvPolicy::Inherit,
        working_dir: None,
    };
    assert_eq!(servers[0].reached, expected);
    let headers = vec![("Authorization".to_owned(), "Bearer secret".to_owned())];
    let url = "https://example.org/mcp".parse().unwrap();
    assert_eq!(servers[1].reached, Reached::Http { url, headers });
    assert!(!format!("{servers:?}").contains("secret!"), "{servers:?}");
}

#[test]
fn faults_name_the_place_and_the_remedy() {
    for (text, expected) in [
        ("agents: 5", "`agents` must be a mapping from names to agents, or a list, not a number"),
        ("agents: {}", "`agents` has no agent"),
        ("agents: [{model: ollama/a}]", "`name` must be set"),
        ("agents: [{name: a}, {name: a}]", "there are two agents `a`"),
        ("agents: {'a b': {}}", "`a b` is no name of an agent"),
        ("agents: {root: {modle: ollama/a}}", "there is no field `modle` here"),
        ("agents: {root: {modle: ollama/a}}", "did you mean `model`?"),
        ("agents: {root: {model: llama3}}", "write it as in `ollama/llama3`"),
        ("agents: {root: {mode: yolo}}", "`mode` has no value `yolo`"),
        ("agents: {root: {toolsets: [{type: filesytem}]}}", "did you mean `filesystem`?"),
        ("agents: {root: {toolsets: [{type: memory}]}}", "docker-agent's toolset `memory` is not supported here"),
        ("agents: {root: {toolsets: [{}]}}", "`type` must be set"),
        ("agents: {root: {toolsets: [{type: shell, command: x}]}}", "`command` means nothing on `type: shell`"),
        ("agents: {root: {toolsets: [{type: mcp}]}}", "a server needs `ref`, `command` or `remote`, one of them"),
        ("agents: {root: {toolsets: [{type: mcp, ref: 'docker:x'}]}}", "name the server's program with `command`"),
        ("agents: {root: {toolsets: [{type: mcp, remote: {url: 'ftp://x'}}]}}", "this is no http or https address"),
        ("agents: {root: {instruction: a, instruction_file: b}}", "the instruction stands here and in a file"),
        ("agents: {root: {instruction_file: ../../etc/hostname}}", "team.yaml:1:35: the file `../../etc/hostname`"),
        ("agents: {root: {compaction_threshold: 1.5}}", "must be above 0 and at most 1, not 1.5"),
        ("agents: {root: {skills: ['https://x.org']}}", "skills from addresses and in this file are not read"),
        ("agents: {root: {hooks: {stopp: []}}}", "did you mean `stop`?"),
        ("agents: {root: {permissions: {deny: ['x:y=[]']}}}", "is no permission rule"),
        ("permissions: {allowed: [x]}", "did you mean `allow`?"),
        ("agent: {mode: reckless}", "`mode` has no value `reckless`"),
        ("mcp_servers: {a: {}}", "a server needs `command` or `url`, one of them"),
        ("mcp_servers: {a: {command: x, url: 'http://h/'}}", "a server needs `command` or `url`, one of them"),
        ("mcp_servers: {a: {command: x, headers: {A: b}}}", "`headers` means nothing on a server that is a program"),
        ("mcp_servers: {a__b: {command: x}}", "`a__b` is no name of a server"),
        ("mcp_servers: {a: {command: x, env: {K: '${env.NOT_THERE}'}}}", "no variable `NOT_THERE`"),
        ("mcp_servers: {a: {url: 'http://user:pass@h/'}}", "credentials into `headers`"),
    ] {
        let fault = fault(text);
        assert!(fault.contains(expected), "{text}\n{fault}");
        assert!(!fault.contains("pass@"), "{fault}");
    }
}

#[test]
fn names_that_stand_for_nothing_are_found_over_all_files() {
    let user = "agents: {root: {sub_agents: [helper], toolsets: [{type: mcp, ref: tme}]}}";
    let error = Team::of([file(user)]).unwrap_err().to_string();
    assert!(error.contains("`sub_agents` of the agent `root` names `helper`, and there is no such agent"), "{error}");
    assert!(error.contains("names `tme`, and there is no such server"), "{error}");
    let more = "{agents: {helper: {handoffs: [root]}}, mcp_servers: {time: {command: x}, tme: {command: y}}}";
    // Two agents that hand over to each other are right.
    assert_eq!(Team::of([file(user), file(more)]).unwrap().root().unwrap().name, "root".into());
    let circle = "agents: {a: {force_handoff: b}, b: {force_handoff: c}, c: {force_handoff: b}}";
    let error = Team::of([file(circle)]).unwrap_err();
    let messages: Vec<&str> = error.problems.iter().map(|problem| &*problem.message).collect();
    let expected =
        ["`force_handoff` of the agent `b` leads back to it", "`force_handoff` of the agent `c` leads back to it"];
    assert_eq!(messages, expected);
}

#[test]
fn without_agents_there_is_one_with_all_tools() {
    let team = Team::of([]).unwrap();
    assert_eq!(team.agents, [AgentDefinition::new("root")]);
    assert_eq!(team.agent("root").unwrap().toolsets, None);
}

#[test]
fn of_two_files_the_stronger_ones_word_stands_and_rules_add_up() {
    let weak = of(
        Source::User,
        "{agent: {model: ollama/a, mode: strict}, agents: {root: {description: weak}, x: {}}, permissions: {allow: [a]}}",
    );
    let strong = of(
        Source::User,
        "{agent: {model: ollama/b}, agents: {other: {}, root: {description: strong}}, permissions: {allow: [b]}}",
    );
    let managed = of(Source::Managed, "permissions: {deny: [c]}");
    let team = Team::of([managed, weak, strong]).unwrap();
    let names: Vec<&str> = team.agents.iter().map(|agent| &*agent.name).collect();
    assert_eq!(names, ["root", "other", "x"]);
    assert_eq!(&*team.root().unwrap().description, "strong");
    assert_eq!((team.defaults.model.as_deref(), team.defaults.mode), (Some("ollama/b"), Some(SafetyMode::Strict)));
    let allowed: Vec<String> = team.rules.user.allow.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["a", "b"]);
    assert_eq!(team.rules.managed.deny.len(), 1);
}

#[test]
fn of_a_project_nothing_is_used_unapproved_but_rules_that_deny_or_ask() {
    let text = "{agents: {root: {}}, agent: {mode: autonomous}, mcp_servers: {s: {command: x}},
        permissions: {allow: [a], ask: [b], deny: [c]}}";
    let mut refused = of(Source::Workspace, text);
    let notes = refused.settle(|_| Err("not trusted".to_owned()));
    assert_eq!((refused.agents.len(), refused.servers.len(), refused.defaults.mode), (0, 0, None));
    let rules = &refused.permissions;
    assert_eq!((rules.allow.len(), rules.ask.len(), rules.deny.len()), (0, 1, 1));
    let expected = [
        "the MCP server `s` is not used: not trusted; `gatehook hooks trust` approves it",
        "the agent `root` is not used: not trusted; `gatehook hooks trust` approves it",
        "`agent` and what `permissions` allow is not used: not trusted; `gatehook hooks trust` approves it",
    ];
    assert_eq!(notes, expected);

    let mut approved = of(Source::Workspace, text);
    assert_eq!(approved.settle(|_| Ok(None)), [""; 0]);
    assert_eq!((approved.agents.len(), approved.servers.len()), (1, 1));
    assert_eq!((approved.defaults.mode, approved.permissions.allow.len()), (Some(SafetyMode::Autonomous), 1));

    let mut own = of(Source::User, text);
    assert_eq!(own.settle(|_| panic!("nobody is asked about the user's own")), [""; 0]);
    assert_eq!(own.agents.len(), 1);
}

#[test]
fn what_is_approved_changes_with_what_is_written() {
    let written = |text: &str| -> Vec<serde_json::Value> {
        let parts = of(Source::Workspace, text).parts();
        let hooks = parts.groups.iter().flat_map(|group| &group.hooks);
        hooks.map(|hook| (**hook.written.as_ref().unwrap()).clone()).collect()
    };
    let before = written("agents: {root: {instruction: a, toolsets: [{type: mcp, command: x}]}}");
    assert_eq!(before.len(), 2);
    for changed in [
        "agents: {root: {instruction: b, toolsets: [{type: mcp, command: x}]}}",
        "agents: {root: {instruction: a, toolsets: [{type: mcp, command: x, args: [y]}]}}",
        "agents: {other: {instruction: a, toolsets: [{type: mcp, command: x}]}}",
    ] {
        assert_ne!(written(changed), before, "{changed}");
    }
    assert!(of(Source::Workspace, "hooks: {}").parts().is_empty());
}

const DOCKER_AGENT: &str = "version: '7'
metadata: {author: somebody}
providers: {here: {base_url: 'http://127.0.0.1:1/v1', token_key: KEY}}
models:
  fast: openai/gpt-4o-mini
  big: {provider: here, model: qwen, temperature: 0.5, max_tokens: 100, provider_opts: {context_size: 8192},
        cost: {input: 1, output: 2}}
mcps: {clock: {command: uvx, args: [mcp-server-time], env: {A: '$HOME', B: '${env.HOME}', C: '${HOME}/x'}}}
runtime: {safety: restricted}
permissions: {allow: ['shell:cmd=ls*'], deny: ['shell:cmd=rm*']}
agents:
  root:
    model: big
    description: leads
    instruction: |
      Lead.
    sub_agents: [helper]
    add_date: true
    safety: balanced
    toolsets:
      - type: filesystem
      - type: shell
      - {type: mcp, ref: clock}
      - {type: mcp, name: search, remote: {url: 'https://example.org/mcp', transport_type: streamable}}
    commands: [{df: check the disk}]
    hooks:
      pre_tool_use:
        - matcher: shell
          hooks: [{type: command, command: ./guard.sh}]
  helper:
    model: fast
    description: helps
    redact_secrets: false
";

fn docker_agent(text: &str) -> Result<TeamFile, ConfigError> {
    let env = BTreeMap::from([("HOME".to_owned(), "/home/u".to_owned())]);
    read_as(text, &ReadOptions { profile: Profile::DockerAgent, env: &env, ..ReadOptions::default() })
}

#[test]
fn docker_agents_own_file_is_read_as_it_is() {
    let file = docker_agent(DOCKER_AGENT).unwrap_or_else(|error| panic!("{error}"));
    let [root, helper] = &*file.agents else { panic!("{:?}", file.agents) };
    assert_eq!(root.model.as_deref(), Some("openai/qwen"));
    assert_eq!(helper.model.as_deref(), Some("openai/gpt-4o-mini"));
    assert_eq!((root.mode, file.defaults.mode), (Some(SafetyMode::Balanced), Some(SafetyMode::Restricted)));
    assert_eq!((&helper.toolsets, &helper.skills), (&Some(vec![]), &Skills::Off));
    assert_eq!(root.commands["df"].instruction, "check the disk");
    let big = file.models.iter().find(|model| &*model.id == "openai/qwen").unwrap();
    assert_eq!((big.window, big.prices), (Some(8192), Some((1.0, 2.0))));
    assert_eq!((big.base_url.as_deref(), big.token_key.as_deref()), (Some("http://127.0.0.1:1/v1"), Some("KEY")));
    assert_eq!(big.options["max_tokens"], 100);
    assert_eq!(big.options["temperature"], 0.5);
    // Hooks are under docker-agent's contract, and secrets are taken out unless the file says otherwise.
    let hooks: Vec<(Event, &str)> = root
        .hooks
        .groups
        .iter()
        .flat_map(|group| group.hooks.iter().map(|hook| (group.event, hook.profile.name())))
        .collect();
    assert_eq!(hooks[0], (Event::PreToolUse, "docker-agent"));
    assert_eq!(hooks.len(), 5);
    assert!(helper.hooks.is_empty());
    // Its servers' tools are called as docker-agent calls them.
    let names: Vec<(&str, &Naming)> = file.servers.iter().map(|it| (&*it.name, &it.naming)).collect();
    assert_eq!(names, [("uvx", &Naming::Bare), ("search", &Naming::Prefixed("search".into()))]);
    let Reached::Program { env, env_policy, .. } = &file.servers[0].reached else { panic!() };
    assert_eq!(*env_policy, EnvPolicy::Inherit);
    let values: Vec<&str> = env.values().map(String::as_str).collect();
    assert_eq!(values, ["/home/u", "/home/u", "/home/u/x"]);
}

#[test]
fn what_docker_agent_has_and_we_have_not_is_named_as_such() {
    for (text, expected) in [
        ("rag: {}", "docker-agent's `rag` is not supported here"),
        ("flavors: {}", "docker-agent's `flavors` is not supported here"),
        ("nonsense: {}", "there is no field `nonsense` here"),
        ("agents: {root: {fallback: {}}}", "docker-agent's `fallback` is not supported here"),
        ("agents: {root: {structured_output: {}}}", "docker-agent's `structured_output` is not supported here"),
        ("agents: {root: {toolsets: [{type: rag}]}}", "docker-agent's toolset `rag` is not supported here"),
        ("agents: {root: {toolsets: [{type: shell, sudo_askpass: true}]}}", "docker-agent's `sudo_askpass`"),
        ("agents: {root: {toolsets: [{type: mcp, ref: x}]}}", "there is no server `x` under `mcps`"),
        (
            "agents: {root: {toolsets: [{type: mcp, remote: {url: 'http://h/', transport_type: sse}}]}}",
            "the older transport `sse` is not spoken here",
        ),
        ("agents: {root: {model: nobody}}", "there is no model `nobody` in this file"),
        ("agents: {root: {model: 'openai/a,openai/b'}}", "several models that take turns are not supported here"),
        ("agents: {root: {sub_agents: [nobody]}}", "there is no agent `nobody` in this file"),
        ("agents: {root: {sub_agents: ['myorg/reviewer']}}", "agents of registries and addresses are not read"),
        ("models: {m: {provider: openai, model: x, routing: []}}", "docker-agent's `routing` is not supported here"),
        ("models: {m: {provider: openai}}", "`model` must be set"),
        ("models: {m: {provider: openai, model: x, base_url: example.org}}", "this is no http or https address"),
        ("runtime: {sandbox: true}", "docker-agent's `sandbox` is not supported here"),
    ] {
        let text = if text.starts_with("agents") { text.to_owned() } else { format!("agents: {{root: {{}}}}\n{text}") };
        let error = docker_agent(&format!("version: '7'\n{text}")).map(|file| panic!("{text}\n{file:?}")).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}\n{error}");
    }
}

#[test]
fn the_schema_knows_every_section() {
    let schema = schema();
    for section in sections() {
        assert!(schema.contains_key(section), "{section}");
    }
    assert!(schema["agents"]["anyOf"][0]["additionalProperties"]["properties"]["toolsets"].is_object());
}

proptest::proptest! {
    /// Nothing that a file can say makes the reader panic, and what it takes it can put together.
    #[test]
    fn any_file_is_read_or_refused(text in r"(agents|agent|mcp_servers|permissions|models|version): (\{[a-z]{0,3}: [\[\]{}a-z:, '0-9]{0,40}\}|\[[a-z{}:, ]{0,20}\]|[a-z0-9']{0,8})\n?") {
        for profile in [Profile::Native, Profile::DockerAgent] {
            if let Ok(file) = read_as(&text, &ReadOptions { profile, ..ReadOptions::default() }) {
                let _ = Team::of([file]);
            }
        }
    }
}
