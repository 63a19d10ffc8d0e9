//! An agent's toolsets: sets of its own tools, and MCP servers, which may stand here.

use std::path::Path;
use std::sync::Arc;

use gatehook_engine::config::{DiagnosticKind as Kind, Section, did_you_mean, header_map};
use gatehook_engine::definition::{EnvPolicy, Origin};

use super::fields::{BUILTIN, MCP, REMOTE, TOOLSET};
use super::read::{Reader, origin};
use super::{TeamFile, Tools, Toolset, docker_agent, server};
use crate::mcp::{Naming, Reached, ServerDefinition};

/// Fields of a server.
const OF_SERVERS: &[&str] = &["ref", "name", "command", "args", "env", "working_dir", "remote"];

/// `toolsets` of an agent; `None` where it does not say. Servers that stand in them go to `file`.
pub(super) fn toolsets(
    agent: &Section<'_>,
    reader: &Reader<'_, '_>,
    name: &Arc<str>,
    file: &mut TeamFile,
) -> Option<Vec<Toolset>> {
    let node = agent.node("toolsets")?;
    let items = match &node.value {
        gatehook_engine::config::Value::Seq(items) => items,
        _ => return agent.wrong_type("toolsets", node, "a list of toolsets"),
    };
    let read = |(at, item)| {
        let path = format!("{}.toolsets[{at}]", agent.path);
        let section = Section::open(agent.context, item, path, TOOLSET)?;
        if reader.is_docker_agents {
            docker_agent::refuse_unknown(&section, docker_agent::TOOLSET);
        } else {
            section.refuse_unknown(|_| false);
        }
        toolset(&section, reader, name, file)
    };
    Some(items.iter().enumerate().filter_map(read).collect())
}

fn toolset(section: &Section<'_>, reader: &Reader<'_, '_>, agent: &Arc<str>, file: &mut TeamFile) -> Option<Toolset> {
    section.require("type");
    let kind = section.text("type")?;
    let tools = match BUILTIN.iter().find(|known| **known == kind) {
        Some(builtin) => {
            for field in OF_SERVERS.iter().filter(|field| section.node(field).is_some()) {
                let problem =
                    section.problem(Kind::MisplacedField, format!("`{field}` means nothing on `type: {kind}`"));
                section.report(problem.at(section.place(field)).help(format!("it belongs to `type: {MCP}`")));
            }
            Tools::Builtin(builtin)
        }
        None if kind == MCP => Tools::Server(of_server(section, reader, agent, file)?),
        None => {
            refuse_type(section, kind);
            return None;
        }
    };
    Some(Toolset {
        tools,
        only: section.texts("tools").unwrap_or_default(),
        read_only: section.bool("readonly").unwrap_or(false),
        instruction: section.text("instruction").map(Into::into),
    })
}

fn refuse_type(section: &Section<'_>, kind: &str) {
    let known = || BUILTIN.into_iter().chain([MCP]);
    let place = section.place("type");
    if docker_agent::TOOLSETS.contains(&kind) {
        let message = format!("docker-agent's toolset `{kind}` is not supported here");
        let help = format!("remove it, or use an MCP server; there are {}", known().collect::<Vec<_>>().join(", "));
        section.report(section.problem(Kind::Unsupported, message).at(place).help(help));
        return;
    }
    let problem = section.problem(Kind::InvalidValue, format!("there is no toolset `{kind}`")).at(place);
    let all = || format!("use one of {}", known().collect::<Vec<_>>().join(", "));
    section.report(problem.help(did_you_mean(kind, known()).unwrap_or_else(all)));
}

/// The name of the server that a toolset means: one of the file's, or one that stands here.
fn of_server(
    section: &Section<'_>,
    reader: &Reader<'_, '_>,
    agent: &Arc<str>,
    file: &mut TeamFile,
) -> Option<Arc<str>> {
    if let Some(name) = section.text("ref") {
        if name.starts_with("docker:") {
            let message = "servers of Docker's catalogue run in containers that Docker's own gateway starts";
            let problem = section.problem(Kind::Unsupported, message).at(section.place("ref"));
            section.report(problem.help("name the server's program with `command`, or its address with `remote`"));
            return None;
        }
        if !reader.is_docker_agents {
            // It may stand in another file: all of them are looked at together.
            return Some(name.into());
        }
        let Some((_, node)) = reader.mcps.iter().find(|(known, _)| *known == name) else {
            let problem = section.problem(Kind::UnknownName, format!("there is no server `{name}` under `mcps`"));
            let help = did_you_mean(name, reader.mcps.iter().map(|(known, _)| *known));
            section.report(problem.at(section.place("ref")).maybe_help(help));
            return None;
        };
        let definition = Section::open(section.context, node, format!("mcps.{name}"), TOOLSET)?;
        docker_agent::refuse_unknown(&definition, docker_agent::TOOLSET);
        return inline(&definition, section.text("name"), reader, agent, file);
    }
    inline(section, None, reader, agent, file)
}

/// A server that stands in a toolset, or under docker-agent's `mcps`.
fn inline(
    section: &Section<'_>,
    named: Option<&str>,
    reader: &Reader<'_, '_>,
    agent: &Arc<str>,
    file: &mut TeamFile,
) -> Option<Arc<str>> {
    let options = reader.options;
    let remote = section.node("remote").and_then(|node| {
        let remote = Section::open(section.context, node, format!("{}.remote", section.path), REMOTE)?;
        docker_agent::refuse_unknown(&remote, docker_agent::REMOTE);
        Some(remote)
    });
    let reached = match (section.text("command"), &remote) {
        (Some(command), None) => Reached::Program {
            command: command.to_owned(),
            args: section.texts("args").unwrap_or_default(),
            env: server::environment(section, options, reader.is_docker_agents),
            env_policy: if reader.is_docker_agents { EnvPolicy::Inherit } else { EnvPolicy::Minimal },
            working_dir: section.text("working_dir").map(str::to_owned),
        },
        (None, Some(remote)) => {
            if remote.text("transport_type") == Some("sse") {
                let problem = remote.problem(Kind::Unsupported, "the older transport `sse` is not spoken here");
                remote
                    .report(problem.at(remote.place("transport_type")).help("use `streamable`, if the server has it"));
            } else {
                remote.choice("transport_type", &[("streamable", ()), ("streamable-http", ())]);
            }
            server::http(remote, "url", header_map(remote, "headers", options), options)?
        }
        _ => {
            let problem =
                section.problem(Kind::FieldRequired, "a server needs `ref`, `command` or `remote`, one of them");
            section.report(problem.at(section.head()));
            return None;
        }
    };
    let written = named.or_else(|| section.text("name")).filter(|name| !name.is_empty());
    if let Some(name) = written {
        server::refuse_name(section, name)?;
    }
    let wanted = written.map_or_else(|| called(&reached), str::to_owned);
    let definition = ServerDefinition {
        naming: match (reader.is_docker_agents, written) {
            (false, _) => Naming::Server,
            (true, Some(name)) => Naming::Prefixed(name.into()),
            (true, None) => Naming::Bare,
        },
        reached,
        tools: Vec::new(),
        startup_timeout: ServerDefinition::STARTUP,
        timeout: ServerDefinition::CALL,
        origin: Origin { agent: Some(agent.clone()), ..origin(section, options) },
        written: Arc::new(section.node.to_json()),
        seal: None,
        name: wanted.as_str().into(),
    };
    Some(take(definition, file))
}

/// What a server is called that has no name: by its program, or its host.
fn called(reached: &Reached) -> String {
    let name = match reached {
        Reached::Program { command, .. } => {
            Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default()
        }
        Reached::Http { url, .. } => url.host().unwrap_or_default(),
    };
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect();
    let name: String = name.trim_matches('-').chars().take(24).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

/// Puts a server to the file's, under a name that no other one has.
fn take(mut definition: ServerDefinition, file: &mut TeamFile) -> Arc<str> {
    let same = |known: &ServerDefinition| {
        known.reached == definition.reached && known.naming == definition.naming && known.tools.is_empty()
    };
    if let Some(known) = file.servers.iter().find(|known| same(known)) {
        return known.name.clone();
    }
    let mut number = 2;
    let wanted = definition.name.clone();
    while file.servers.iter().any(|known| known.name == definition.name) {
        definition.name = format!("{wanted}-{number}").into();
        number += 1;
    }
    let name = definition.name.clone();
    file.servers.push(definition);
    name
}
