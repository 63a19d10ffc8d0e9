//! MCP servers as files define them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatehook_engine::config::fields::ENV_POLICY;
use gatehook_engine::config::{DiagnosticKind as Kind, Node, ReadOptions, Section, Value, expanded, header_map};
use gatehook_engine::definition::EnvPolicy;

use super::docker_agent::variables;
use super::fields::SERVER;
use super::read::origin;
use crate::mcp::{Naming, Reached, ServerDefinition};

/// `mcp_servers`.
pub(super) fn servers(root: &Section<'_>, options: &ReadOptions<'_>) -> Vec<ServerDefinition> {
    let sections = root.named_sections("mcp_servers", SERVER);
    let read = |(name, section): &(&str, Section<'_>)| {
        let is_used = section.bool("enabled").unwrap_or(true);
        let server = server(name, section, options)?;
        is_used.then_some(server)
    };
    sections.iter().filter_map(read).collect()
}

fn server(name: &str, section: &Section<'_>, options: &ReadOptions<'_>) -> Option<ServerDefinition> {
    refuse_name(section, name)?;
    let reached = match (section.text("command"), section.text("url")) {
        (Some(command), None) => {
            refuse(section, &["headers"], "a server that is a program");
            Reached::Program {
                command: command.to_owned(),
                args: section.texts("args").unwrap_or_default(),
                env: environment(section, options, false),
                env_policy: env_policy(section).unwrap_or(EnvPolicy::Minimal),
                working_dir: section.text("working_dir").map(str::to_owned),
            }
        }
        (None, Some(_)) => {
            refuse(section, &["args", "env", "env_policy", "working_dir"], "a server over HTTP");
            http(section, "url", header_map(section, "headers", options), options)?
        }
        _ => {
            let problem = section.problem(Kind::FieldRequired, "a server needs `command` or `url`, one of them");
            section.report(problem.at(section.head()));
            return None;
        }
    };
    let timeout = |name, default: Duration| section.duration(name).filter(|it| !it.is_zero()).unwrap_or(default);
    Some(ServerDefinition {
        name: name.into(),
        reached,
        naming: Naming::Server,
        tools: section.texts("tools").unwrap_or_default(),
        startup_timeout: timeout("startup_timeout", ServerDefinition::STARTUP),
        timeout: timeout("timeout", ServerDefinition::CALL),
        origin: origin(section, options),
        written: Arc::new(section.node.to_json()),
        seal: None,
    })
}

/// A name that can stand in those of tools.
pub(super) fn refuse_name(section: &Section<'_>, name: &str) -> Option<()> {
    let is_one = !name.is_empty()
        && name.len() <= 32
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !name.contains("__");
    if !is_one {
        let problem = section.problem(Kind::InvalidValue, format!("`{}` is no name of a server", name.escape_debug()));
        let help = "a name has up to 32 letters, digits, `-` and `_`, and no `__`";
        section.report(problem.at(section.head()).help(help));
    }
    is_one.then_some(())
}

fn refuse(section: &Section<'_>, fields: &[&str], what: &str) {
    for field in fields.iter().filter(|field| section.node(field).is_some()) {
        let problem = section.problem(Kind::MisplacedField, format!("`{field}` means nothing on {what}"));
        section.report(problem.at(section.place(field)).help("remove it"));
    }
}

/// A server over HTTP at the address of a field.
pub(super) fn http(
    section: &Section<'_>,
    field: &str,
    headers: Vec<(String, String)>,
    options: &ReadOptions<'_>,
) -> Option<Reached> {
    let node = section.node(field)?;
    section.context.diagnostics.conceal(node.span.clone());
    let url = expanded(section, node, section.text(field)?, options)?;
    let parsed = url.parse::<http::Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    let Some(uri) = parsed.filter(|uri| uri.authority().is_some_and(|it| !it.as_str().contains('@'))) else {
        let problem = section.problem(Kind::InvalidUrl, "this is no http or https address").at(node.span.clone());
        section.report(problem.help("write it as in `https://example.org/mcp`, and credentials into `headers`"));
        return None;
    };
    Some(Reached::Http { url: uri, headers })
}

/// `env` with what its values refer to.
pub(super) fn environment(
    section: &Section<'_>,
    options: &ReadOptions<'_>,
    is_docker_agents: bool,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for (key, text, span) in section.text_map("env").unwrap_or_default() {
        let name = &key.text;
        let text = if is_docker_agents { variables(&text) } else { text };
        if name.is_empty() || name.contains(['=', '\0']) || text.contains('\0') {
            let message = format!("`{}` cannot be a variable of the environment", name.escape_debug());
            section.report(section.problem(Kind::InvalidValue, message).at(key.span.clone()));
            continue;
        }
        let node = Node { span, value: Value::Null };
        env.extend(expanded(section, &node, &text, options).map(|value| (name.clone(), value)));
    }
    env
}

/// `inherit`, `minimal`, or `{only: [NAME, …]}`.
fn env_policy(section: &Section<'_>) -> Option<EnvPolicy> {
    let node = section.node("env_policy")?;
    if matches!(node.value, Value::Str(_)) {
        return section.choice("env_policy", &ENV_POLICY).cloned();
    }
    const ONLY: &[gatehook_engine::config::Field] =
        &[gatehook_engine::config::Field::new("only", gatehook_engine::config::Shape::Texts, "Names of variables.")];
    let section = section.section("env_policy", ONLY)?;
    section.require("only");
    section.texts("only").map(EnvPolicy::Only)
}
