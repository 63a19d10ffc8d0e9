//! docker-agent's own files: <https://docs.docker.com/ai/docker-agent/reference/config/>. What it has and this program has
//! not is named as such, so that nobody believes it to be in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_engine::config::{
    Context, DiagnosticKind as Kind, Document, Field, Node, ReadOptions, Section, Shape, Value, did_you_mean,
};
use serde_json::{Map, json};

use super::fields::PERMISSIONS;
use super::read::{Reader, origin, permissions, refuse_unknown_agents, threshold, written};
use super::{ModelDefinition, TeamFile};
use crate::approval::SafetyMode;

/// The file: what is read of it.
const FILE: &[Field] = &[
    Field::new("version", Shape::Name, "The format's version."),
    Field::new("metadata", Shape::Any, "Who wrote it; for people."),
    Field::new("agents", Shape::Any, "Agents, by name."),
    Field::new("models", Shape::Any, "Models, by name."),
    Field::new("providers", Shape::Any, "Places of models, by name."),
    Field::new("mcps", Shape::Any, "MCP servers, by name."),
    Field::new("permissions", Shape::Table(PERMISSIONS), "Tool calls that run, are asked about, or are denied."),
    Field::new("runtime", Shape::Any, "What holds for all agents."),
];

const PROVIDER: &[Field] = &[
    Field::new("provider", Shape::Text, "What it speaks."),
    Field::new("api_type", Shape::Word(&["openai_chatcompletions"]), "How it is called."),
    Field::new("base_url", Shape::Text, "Where it is."),
    Field::new("token_key", Shape::Text, "The variable that holds its key."),
];

const MODEL: &[Field] = &[
    Field::new("provider", Shape::Text, "Whose it is."),
    Field::new("model", Shape::Text, "Its name."),
    Field::new("description", Shape::Text, "What it is good for."),
    Field::new("base_url", Shape::Text, "Where it is."),
    Field::new("token_key", Shape::Text, "The variable that holds its key."),
    Field::new("temperature", Shape::Number, "How much chance there is in its answers."),
    Field::new("top_p", Shape::Number, "The same, by probability."),
    Field::new("max_tokens", Shape::Integer, "Tokens of an answer."),
    Field::new("frequency_penalty", Shape::Number, "Against repetition."),
    Field::new("presence_penalty", Shape::Number, "Against repetition."),
    Field::new("compaction_threshold", Shape::Number, "Of its window so much may be full."),
    Field::new("provider_opts", Shape::Any, "`context_size` alone."),
    Field::new("cost", Shape::Any, "What a million tokens cost."),
    Field::new("track_usage", Shape::Bool, "Tokens are always counted."),
    Field::new("bypass_models_gateway", Shape::Bool, "There is no gateway of models here."),
];

const COST: &[Field] = &[
    Field::new("input", Shape::Number, "Of questions."),
    Field::new("output", Shape::Number, "Of answers."),
    Field::new("cache_read", Shape::Number, "Of what was kept."),
    Field::new("cache_write", Shape::Number, "Of what is kept."),
];

const OPTIONS: &[Field] = &[Field::new("context_size", Shape::Integer, "Tokens of its window.")];

const RUNTIME: &[Field] = &[Field::new("safety", Shape::Word(&[]), "How much runs unasked.")];

/// What docker-agent knows in each place and this program does not do.
pub(super) const AGENT: &[&str] = &[
    "fallback",
    "code_mode_tools",
    "structured_output",
    "rag",
    "add_description_parameter",
    "cache",
    "harness",
    "num_history_items",
    "max_old_tool_call_tokens",
    "max_tool_result_tokens",
    "add_prompt_files_depth",
    "budgets",
    "use_commands",
    "use_skills",
    "use_toolsets",
];
pub(super) const COMMAND: &[&str] = &["url"];
pub(super) const TOOLSET: &[&str] = &[
    "toon",
    "model",
    "defer",
    "config",
    "version",
    "url",
    "headers",
    "shared",
    "path",
    "shell",
    "post_edit",
    "api_config",
    "webhook_config",
    "ignore_vcs",
    "allow_list",
    "deny_list",
    "allowed_servers",
    "blocked_servers",
    "file_types",
    "timeout",
    "escape_html",
    "allowed_domains",
    "blocked_domains",
    "allow_private_ips",
    "sudo_askpass",
    "recall",
    "rag_config",
    "models",
    "lifecycle",
];
pub(super) const REMOTE: &[&str] = &["oauth"];
/// What it calls otherwise than a file of ours.
const OWN: &[&str] = &["safety"];
/// Its sets of tools that are not here.
pub(super) const TOOLSETS: &[&str] = &[
    "script",
    "memory",
    "file",
    "background_jobs",
    "tasks",
    "api",
    "a2a",
    "lsp",
    "user_prompt",
    "openapi",
    "model_picker",
    "background_agents",
    "rag",
    "webhook",
    "mcp_catalog",
];
const UNSUPPORTED_FILE: &[&str] = &["rag", "commands", "skills", "toolsets", "budget", "budgets", "flavors"];
const UNSUPPORTED_MODEL: &[&str] = &[
    "parallel_tool_calls",
    "thinking_budget",
    "task_budget",
    "auth",
    "routing",
    "first_available",
    "title_model",
    "compaction_model",
    "capabilities",
    "output_capabilities",
];
const UNSUPPORTED_PROVIDER: &[&str] = &[
    "headers",
    "unload_api",
    "temperature",
    "max_tokens",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "parallel_tool_calls",
    "provider_opts",
    "track_usage",
    "thinking_budget",
    "task_budget",
    "auth",
    "compaction_model",
];
const UNSUPPORTED_RUNTIME: &[&str] = &["sandbox", "network_allowlist"];

/// Settings of a request that go to the model as they are.
const REQUEST: &[&str] = &["temperature", "top_p", "frequency_penalty", "presence_penalty"];

/// Whether a document is an agents' file of docker-agent's, and not one of ours: it has agents, nothing that is only
/// ours, and something that is only its.
///
/// ```
/// use gatehook_agent::team;
/// use gatehook_engine::config::{Document, Format};
///
/// for (text, is_own) in [
///     ("{version: '2', agents: {root: {model: openai/gpt-4o}}}", true),
///     ("{agents: {root: {model: fast}}, models: {fast: {provider: openai, model: gpt-4o}}}", true),
///     ("{agents: {root: {model: openai/gpt-4o}}}", false),
///     ("{agents: {root: {}}, models: {'ollama/llama3': {input_price: 0, output_price: 0}}}", false),
/// ] {
///     assert_eq!(team::is_own(&Document::parse("agent.yaml", text, Format::Yaml)?), is_own, "{text}");
/// }
/// # Ok::<(), gatehook_engine::config::ConfigError>(())
/// ```
pub fn is_own(document: &Document) -> bool {
    let has = |name: &str| document.root.get(name).is_some();
    let ours = ["hooks", "dialect", "agent", "mcp_servers", "upstreams", "import", "defaults"];
    let its = ["version", "metadata", "providers", "mcps", "runtime"];
    let has_named_models = document.root.get("models").is_some_and(|models| {
        !models.entries().is_empty() && models.entries().iter().all(|(name, _)| !name.text.contains('/'))
    });
    has("agents")
        && !ours.into_iter().any(has)
        && (its.iter().chain(UNSUPPORTED_FILE).any(|name| has(name)) || has_named_models)
}

/// All of a file.
pub(super) fn read(context: Context<'_>, options: &ReadOptions<'_>) -> TeamFile {
    let Some(root) = Section::open(context, &context.document.root, "", FILE) else { return TeamFile::default() };
    refuse_unknown(&root, UNSUPPORTED_FILE);
    let mut file = TeamFile { origin: origin(&root, options), ..TeamFile::default() };
    let models = models(&root);
    file.models = models.values().cloned().collect();
    let reader = Reader { options, is_docker_agents: true, models: &models, mcps: named(&root, "mcps") };
    file.agents = reader.agents(&root, &mut file);
    refuse_unknown_agents(&root, &file.agents);
    file.permissions = permissions(&root);
    if let Some(runtime) = open(&root, "runtime", RUNTIME) {
        refuse_unknown(&runtime, UNSUPPORTED_RUNTIME);
        file.defaults.mode = runtime.choice("safety", &SafetyMode::ALL);
    }
    file.written = written(&root);
    file
}

/// Reports keys that nothing reads, and those that docker-agent alone does.
pub(super) fn refuse_unknown(section: &Section<'_>, unsupported: &[&str]) {
    for (key, _) in section.node.entries().iter().filter(|(key, _)| unsupported.contains(&key.text.as_str())) {
        let message = format!("docker-agent's `{}` is not supported here", key.text);
        let problem = section.problem(Kind::Unsupported, message).at(key.span.clone());
        section.report(problem.help("remove it: it would have no effect"));
    }
    section.refuse_unknown(|name| unsupported.contains(&name) || OWN.contains(&name));
}

fn open<'a>(section: &Section<'a>, name: &str, fields: &'static [Field]) -> Option<Section<'a>> {
    let path = if section.path.is_empty() { name.to_owned() } else { format!("{}.{name}", section.path) };
    Section::open(section.context, section.node(name)?, path, fields)
}

/// The sections of a mapping from names.
fn named<'a>(root: &Section<'a>, name: &str) -> Vec<(&'a str, &'a Node)> {
    let Some(section) = open(root, name, &[]) else { return Vec::new() };
    section.node.entries().iter().map(|(key, node)| (key.text.as_str(), node)).collect()
}

fn models(root: &Section<'_>) -> BTreeMap<String, ModelDefinition> {
    let providers: BTreeMap<&str, Section<'_>> = named(root, "providers")
        .into_iter()
        .filter_map(|(name, node)| {
            let section = Section::open(root.context, node, format!("providers.{name}"), PROVIDER)?;
            refuse_unknown(&section, UNSUPPORTED_PROVIDER);
            section.choice("api_type", &[("openai_chatcompletions", ())]);
            Some((name, section))
        })
        .collect();
    let read = |(name, node): (&str, &Node)| {
        let path = format!("models.{name}");
        if let Value::Str(id) = &node.value {
            let section = Section { context: root.context, node: root.node, path, fields: MODEL };
            let is_one = id.contains('/');
            if !is_one {
                let problem = section.problem(Kind::InvalidValue, format!("`{id}` names no provider"));
                section.report(problem.at(node.span.clone()).help("write it as in `openai/gpt-4o`"));
            }
            return is_one.then(|| (name.to_owned(), plain(id)));
        }
        let section = Section::open(root.context, node, path, MODEL)?;
        Some((name.to_owned(), model_definition(&section, &providers)?))
    };
    named(root, "models").into_iter().filter_map(read).collect()
}

fn plain(id: &str) -> ModelDefinition {
    let options = Map::new();
    ModelDefinition { id: id.into(), base_url: None, token_key: None, prices: None, window: None, options }
}

fn model_definition(section: &Section<'_>, providers: &BTreeMap<&str, Section<'_>>) -> Option<ModelDefinition> {
    refuse_unknown(section, UNSUPPORTED_MODEL);
    section.require("provider");
    section.require("model");
    let (provider, model) = (section.text("provider")?, section.text("model")?);
    let place = providers.get(provider);
    let of_place = |name: &str| place.and_then(|place| place.text(name));
    let speaks = match place {
        Some(place) => place.text("provider").unwrap_or("openai"),
        None => provider,
    };
    let mut definition = plain(&format!("{speaks}/{model}"));
    definition.base_url = address(section).or_else(|| place.and_then(address));
    definition.token_key = section.text("token_key").or_else(|| of_place("token_key")).map(str::to_owned);
    for name in REQUEST {
        if let Some(number) = section.number(name) {
            definition.options.insert((*name).to_owned(), json!(number));
        }
    }
    if let Some(tokens) = section.count("max_tokens", 1) {
        definition.options.insert("max_tokens".to_owned(), json!(tokens));
    }
    if threshold(section).is_some() {
        let problem = section.problem(Kind::Unsupported, "a model's `compaction_threshold` is not supported here");
        section.report(problem.at(section.place("compaction_threshold")).help("set it for its agents"));
    }
    if let Some(options) = open(section, "provider_opts", OPTIONS) {
        options.refuse_unknown(|_| false);
        definition.window = options.count("context_size", 1).and_then(|tokens| u64::try_from(tokens).ok());
    }
    if let Some(cost) = open(section, "cost", COST) {
        cost.refuse_unknown(|_| false);
        let price = |name| cost.number(name).unwrap_or(0.0);
        definition.prices = Some((price("input"), price("output")));
    }
    Some(definition)
}

/// A `base_url` that can be called: what is said to a model must not go elsewhere because its place is misspelled.
fn address(section: &Section<'_>) -> Option<String> {
    let url = section.text("base_url")?;
    let parsed = url.parse::<http::Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    if parsed.is_none_or(|uri| uri.authority().is_none()) {
        let problem = section.problem(Kind::InvalidUrl, "this is no http or https address");
        section.report(problem.at(section.place("base_url")).help("write it as in `http://127.0.0.1:11434/v1`"));
        return None;
    }
    Some(url.to_owned())
}

/// The `model` of an agent: a name of `models`, or as in `openai/gpt-4o`.
pub(super) fn model(
    section: &Section<'_>,
    field: &str,
    models: &BTreeMap<String, ModelDefinition>,
) -> Option<Arc<str>> {
    let name = section.text(field).filter(|name| *name != "auto")?;
    if let Some(model) = models.get(name) {
        return Some(model.id.clone());
    }
    if name.contains(',') {
        let problem = section.problem(Kind::Unsupported, "several models that take turns are not supported here");
        section.report(problem.at(section.place(field)).help("name one"));
        return None;
    }
    if name.contains('/') {
        return Some(name.into());
    }
    let problem = section.problem(Kind::UnknownName, format!("there is no model `{name}` in this file"));
    let near = did_you_mean(name, models.keys().map(String::as_str));
    let help = near.unwrap_or_else(|| "define it under `models`, or write it as in `openai/gpt-4o`".to_owned());
    section.report(problem.at(section.place(field)).help(help));
    None
}

/// docker-agent's `$NAME` and `${NAME}` as `${env.NAME}`.
pub(super) fn variables(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|braced| braced.split_once('}'));
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
        let begins = after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        match (braced, after.split_at_checked(end).filter(|_| begins)) {
            (Some((name, behind)), _) => {
                out.push_str(&format!("${{env.{}}}", name.strip_prefix("env.").unwrap_or(name)));
                rest = behind;
            }
            (None, Some((name, behind))) => {
                out.push_str(&format!("${{env.{name}}}"));
                rest = behind;
            }
            (None, None) => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}
