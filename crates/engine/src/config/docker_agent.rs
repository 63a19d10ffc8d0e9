//! Where docker-agent's own files keep their hooks (<https://docs.docker.com/ai/docker-agent/configuration/hooks/>): an
//! agent file under `agents.<name>.hooks`, the user's settings under `settings.hooks`, a drop-in of `hooks.d` at its top.
//! The rest of these files is that program's.

use gatehook_events::{Event, Profile};

use super::DiagnosticKind as Kind;
use super::document::{Document, Node, Value};
use super::section::{Context, Section};

/// The agent whose hooks are read; where none has this name it is the first, as its program has it.
const ROOT: &str = "root";

/// What a file of docker-agent's holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'a> {
    /// Its `hooks` mapping; `None` where it has none.
    pub hooks: Option<&'a Node>,
    /// Agents that have hooks too, which are not read.
    pub others: Vec<&'a str>,
}

/// Whether this profile is docker-agent's, of any version.
pub fn is_of(profile: Profile) -> bool {
    matches!(profile, Profile::DockerAgent | Profile::DockerAgentV158)
}

/// Whether a document is one of docker-agent's own files, and not hooks in a file of ours.
///
/// ```
/// use gatehook_engine::config::{Document, Format, docker_agent};
///
/// for (text, is_own) in [
///     ("agents: {root: {model: m}}", true),
///     ("settings: {theme: dark}", true),
///     ("pre_tool_use: []", true),
///     ("hooks: {pre_tool_use: []}", false),
/// ] {
///     let document = Document::parse("agent.yaml", text, Format::Yaml)?;
///     assert_eq!(docker_agent::is_own(&document), is_own, "{text}");
/// }
/// # Ok::<(), gatehook_engine::config::ConfigError>(())
/// ```
pub fn is_own(document: &Document) -> bool {
    let has = |name: &str| document.root.get(name).is_some();
    if has("hooks") || has("dialect") {
        return false;
    }
    has("agents") || has("settings") || is_drop_in(document)
}

/// Events stand at its top.
fn is_drop_in(document: &Document) -> bool {
    document.root.entries().iter().any(|(key, _)| Event::from_name(&key.text).is_some())
}

/// The hooks of one of its own files.
pub(super) fn find(context: Context<'_>) -> Found<'_> {
    let root = &context.document.root;
    if let Some(agents) = root.get("agents") {
        return agent(context, agents);
    }
    let hooks = match root.get("settings") {
        Some(settings) => Section::open(context, settings, "settings", &[]).and_then(|it| it.node("hooks")),
        None => Some(root),
    };
    Found { hooks, others: Vec::new() }
}

fn agent<'a>(context: Context<'a>, agents: &'a Node) -> Found<'a> {
    let nothing = Found { hooks: None, others: Vec::new() };
    if !matches!(agents.value, Value::Map(_)) {
        let message = format!("`agents` must be a mapping, not {}", agents.value.type_name());
        context.diagnostics.report(super::Diagnostic::new(Kind::WrongType, "agents", message).at(agents.span.clone()));
        return nothing;
    }
    let named = agents.entries().iter().find(|(name, _)| name.text == ROOT);
    let Some((chosen, node)) = named.or(agents.entries().first()) else { return nothing };
    let has_hooks = |node: &Node| node.get("hooks").is_some_and(|hooks| !hooks.entries().is_empty());
    let others = agents.entries().iter().filter(|(name, node)| name.text != chosen.text && has_hooks(node));
    let others = others.map(|(name, _)| name.text.as_str()).collect();
    let section = Section::open(context, node, format!("agents.{}", chosen.text), &[]);
    Found { hooks: section.and_then(|section| section.node("hooks")), others }
}
