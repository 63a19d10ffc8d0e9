//! The agents' sections of one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_engine::config::{
    self, Context, DiagnosticKind as Kind, Diagnostics, Document, Node, ReadOptions, Section, Value, did_you_mean,
    read_hooks,
};
use gatehook_engine::definition::{Origin, Source};
use gatehook_engine::events::{Event, Profile};
use gatehook_engine::{HookDefinition, HookGroup, HooksConfig};

use super::fields::{AGENT, AGENTS, COMMAND, FILE, PERMISSIONS};
use super::{
    AgentDefinition, Command, Defaults, ModelDefinition, ROOT, Skills, TeamFile, docker_agent, server, toolset,
};
use crate::approval::{Rule, Rules, SafetyMode};

/// Bytes of a file that holds an instruction.
const MAX_INSTRUCTION: u64 = 256 * 1024;

/// The names of the agents' sections.
pub fn sections() -> impl Iterator<Item = &'static str> {
    FILE.iter().map(|field| field.name)
}

/// What a document says of agents. What is wrong goes to `diagnostics`; the rest is only good for use where nothing is
/// wrong. Under docker-agent's profile its own files are read as that program reads them.
pub fn read(document: &Document, options: &ReadOptions<'_>, diagnostics: &Diagnostics) -> TeamFile {
    let context = Context { document, diagnostics };
    let is_docker_agents = config::docker_agent::is_of(options.profile) && config::docker_agent::is_own(document);
    if is_docker_agents && document.root.get("agents").is_some() {
        return docker_agent::read(context, options);
    }
    // What a foreign program's file says besides hooks is that program's.
    if is_docker_agents || options.profile.spec().is_foreign || !matches!(document.root.value, Value::Map(_)) {
        return TeamFile::default();
    }
    let Some(root) = Section::open(context, &document.root, "", FILE) else { return TeamFile::default() };
    let reader = Reader { options, is_docker_agents: false, models: &BTreeMap::new(), mcps: Vec::new() };
    let mut file = TeamFile { origin: origin(&root, options), ..TeamFile::default() };
    file.servers = server::servers(&root, options);
    file.agents = reader.agents(&root, &mut file);
    let settings = root.section("agent", AGENT);
    file.defaults = settings.as_ref().map(|section| defaults(section, options)).unwrap_or_default();
    file.permissions = permissions(&root);
    file.written = written(&root);
    file
}

/// `agent` and `permissions` as they are written.
pub(super) fn written(root: &Section<'_>) -> Option<Arc<serde_json::Value>> {
    let part = |name: &str| Some((name.to_owned(), root.node(name)?.to_json()));
    let parts: serde_json::Map<_, _> = ["agent", "permissions"].into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| Arc::new(serde_json::Value::Object(parts)))
}

pub(super) fn origin(section: &Section<'_>, options: &ReadOptions<'_>) -> Origin {
    let line = section.context.document.line(section.head().start);
    Origin { source: options.source, file: options.file.clone(), line, ..Origin::default() }
}

fn defaults(section: &Section<'_>, options: &ReadOptions<'_>) -> Defaults {
    let folder = options.file.as_deref().and_then(|file| file.parent()).unwrap_or(&options.working_dir);
    let folders = section.texts("folders");
    Defaults {
        model: model(section, "model"),
        mode: section.choice("mode", &SafetyMode::ALL),
        max_iterations: number(section, "max_iterations"),
        compaction_threshold: threshold(section),
        sandbox: section.bool("sandbox"),
        folders: folders.map(|folders| folders.iter().map(|path| home(path, options, folder)).collect()),
        private_addresses: section.bool("private_addresses"),
        maintenance_interval: section.age("maintenance_interval"),
    }
}

/// A path from a folder; `~` is the user's.
fn home(path: &str, options: &ReadOptions<'_>, folder: &Path) -> PathBuf {
    let below = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (below, options.env.get("HOME")) {
        (Some(below), Some(home)) => Path::new(home).join(below.trim_start_matches('/')),
        _ => folder.join(path),
    }
}

/// A model as in `provider/name`.
fn model(section: &Section<'_>, field: &str) -> Option<Arc<str>> {
    let name = section.text(field)?;
    let is_one = name.split_once('/').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty());
    if !is_one {
        let problem = section.problem(Kind::InvalidValue, format!("`{name}` names no provider"));
        section.report(problem.at(section.place(field)).help("write it as in `ollama/llama3`"));
        return None;
    }
    Some(name.into())
}

fn number(section: &Section<'_>, name: &str) -> Option<u64> {
    section.count(name, 0).and_then(|count| u64::try_from(count).ok())
}

pub(super) fn threshold(section: &Section<'_>) -> Option<f64> {
    let threshold = section.number("compaction_threshold")?;
    if threshold > 0.0 && threshold <= 1.0 {
        return Some(threshold);
    }
    let message = format!("`compaction_threshold` must be above 0 and at most 1, not {threshold}");
    section.report(section.problem(Kind::InvalidValue, message).at(section.place("compaction_threshold")));
    None
}

/// `permissions` of a section.
pub(super) fn permissions(section: &Section<'_>) -> Rules {
    let Some(section) = section.section("permissions", PERMISSIONS) else { return Rules::default() };
    let rules = |name: &str| {
        let texts = section.texts(name).unwrap_or_default();
        let nodes = match section.node(name).map(|node| &node.value) {
            Some(Value::Seq(items)) => items.as_slice(),
            _ => &[],
        };
        let rule = |(text, node): (String, &Node)| match text.parse::<Rule>() {
            Ok(rule) => Some(rule),
            Err(error) => {
                let problem = section.problem(Kind::InvalidPattern, error.to_string()).at(node.span.clone());
                section.report(problem.help("write it as in `read` or `bash:command=git *`"));
                None
            }
        };
        texts.into_iter().zip(nodes).filter_map(rule).collect()
    };
    Rules { allow: rules("allow"), ask: rules("ask"), deny: rules("deny") }
}

/// What an agent is read by.
pub(super) struct Reader<'a, 'o> {
    pub(super) options: &'a ReadOptions<'o>,
    /// The file is docker-agent's: what is left out is as that program has it.
    pub(super) is_docker_agents: bool,
    /// Models that it gives names of its own.
    pub(super) models: &'a BTreeMap<String, ModelDefinition>,
    /// Servers under its `mcps`.
    pub(super) mcps: Vec<(&'a str, &'a Node)>,
}

impl Reader<'_, '_> {
    /// `agents`, a mapping or a list. Servers that stand in toolsets go to `file`.
    pub(super) fn agents(&self, root: &Section<'_>, file: &mut TeamFile) -> Vec<AgentDefinition> {
        let Some(node) = root.node("agents") else { return Vec::new() };
        let named: Vec<(Option<&str>, &Node)> = match &node.value {
            Value::Map(entries) => entries.iter().map(|(key, node)| (Some(key.text.as_str()), node)).collect(),
            Value::Seq(items) => items.iter().map(|node| (None, node)).collect(),
            _ => {
                return root
                    .wrong_type("agents", node, "a mapping from names to agents, or a list")
                    .unwrap_or_default();
            }
        };
        if named.is_empty() {
            let problem = root.problem(Kind::FieldRequired, "`agents` has no agent").at(node.span.clone());
            root.report(problem.help(format!("define one, as in `{ROOT}: {{instruction: …}}`, or remove the section")));
        }
        let mut agents: Vec<AgentDefinition> = Vec::new();
        for (at, (name, node)) in named.into_iter().enumerate() {
            if root.context.diagnostics.is_full() {
                break;
            }
            let path = name.map_or_else(|| format!("agents[{at}]"), |name| format!("agents.{name}"));
            let agent = Section::open(root.context, node, path, AGENTS).and_then(|it| self.agent(&it, name, file));
            agents.extend(agent);
        }
        for (at, agent) in agents.iter().enumerate() {
            if agents.iter().take(at).any(|earlier| earlier.name == agent.name) {
                let message = format!("there are two agents `{}`", agent.name);
                root.report(
                    root.problem(Kind::DuplicateName, message).at(node.span.clone()).help("name one otherwise"),
                );
            }
        }
        agents
    }

    fn agent(&self, section: &Section<'_>, name: Option<&str>, file: &mut TeamFile) -> Option<AgentDefinition> {
        if self.is_docker_agents {
            docker_agent::refuse_unknown(section, docker_agent::AGENT);
        } else {
            section.refuse_unknown(|_| false);
        }
        let name = self.name(section, name)?;
        let options = ReadOptions { agent: Some(name.clone()), ..self.options.clone() };
        let names = |field| section.texts(field).unwrap_or_default().iter().map(|name| name.as_str().into()).collect();
        let instruction = self.instruction(section);
        let mut written = section.node.to_json();
        if section.node("instruction_file").is_some()
            && let Some(written) = written.as_object_mut()
        {
            // What is approved is the text, not the name of its file.
            written.insert("instruction".to_owned(), instruction.as_str().into());
        }
        let mut hooks = match section.node("hooks") {
            Some(node) => read_hooks(section.context.document, node, &options, section.context.diagnostics),
            None => HooksConfig::default(),
        };
        hooks.groups.extend(self.builtins(section, &name));
        let none = self.is_docker_agents.then(Vec::new);
        Some(AgentDefinition {
            description: section.text("description").unwrap_or_default().into(),
            instruction: instruction.into(),
            welcome: section.text("welcome_message").map(Into::into),
            model: self.model(section, "model"),
            toolsets: toolset::toolsets(section, self, &name, file).or(none),
            sub_agents: names("sub_agents"),
            handoffs: names("handoffs"),
            force_handoff: section.text("force_handoff").map(Into::into),
            hooks,
            commands: commands(section),
            max_iterations: number(section, "max_iterations"),
            max_consecutive_tool_calls: section.count("max_consecutive_tool_calls", 0).filter(|&count| count > 0),
            // docker-agent's word, which no file of ours may have.
            mode: section.choice("mode", &SafetyMode::ALL).or_else(|| section.choice("safety", &SafetyMode::ALL)),
            permissions: permissions(section),
            read_only: section.bool("readonly").unwrap_or(false),
            skills: self.skills(section),
            compacts: section.bool("session_compaction").unwrap_or(true),
            compaction_threshold: threshold(section),
            compaction_model: self.model(section, "compaction_model"),
            profile: if self.is_docker_agents { Profile::DockerAgent } else { Profile::Native },
            origin: Origin { agent: Some(name.clone()), ..origin(section, self.options) },
            written: Arc::new(written),
            name,
        })
    }

    fn model(&self, section: &Section<'_>, field: &str) -> Option<Arc<str>> {
        if self.is_docker_agents { docker_agent::model(section, field, self.models) } else { model(section, field) }
    }

    fn name(&self, section: &Section<'_>, key: Option<&str>) -> Option<Arc<str>> {
        let written = section.text("name");
        let name = match (key, written) {
            (Some(key), None) => key,
            (None, Some(name)) => name,
            (Some(_), Some(_)) => {
                let problem = section.problem(Kind::MisplacedField, "this agent has a name before it");
                section.report(problem.at(section.place("name")).help("remove `name`"));
                return None;
            }
            (None, None) => {
                section.require("name");
                return None;
            }
        };
        let is_one = !name.is_empty() && name.len() <= 64 && !name.contains(char::is_whitespace);
        if !is_one {
            let message = format!("`{}` is no name of an agent", name.escape_debug());
            let problem = section.problem(Kind::InvalidValue, message).at(section.head());
            section.report(problem.help("a name has up to 64 characters and no blanks"));
        }
        is_one.then(|| name.into())
    }

    /// `instruction` and `instruction_file`, of which there may be one.
    fn instruction(&self, section: &Section<'_>) -> String {
        if section.node("instruction").is_some() && section.node("instruction_file").is_some() {
            let problem = section.problem(Kind::MisplacedField, "the instruction stands here and in a file");
            section.report(problem.at(section.place("instruction_file")).help("keep one of them"));
            return String::new();
        }
        let files = section.text_or_texts("instruction_file").unwrap_or_default();
        let texts = files.iter().filter_map(|path| match self.file(path) {
            Ok(text) => Some(text),
            Err(cause) => {
                let problem = section.problem(Kind::MissingFile, format!("the file `{path}` {cause}"));
                section.report(problem.at(section.place("instruction_file")));
                None
            }
        });
        section.text_or_texts("instruction").unwrap_or_else(|| texts.collect()).join("\n\n")
    }

    /// A file in the folder of the one that names it.
    fn file(&self, path: &str) -> Result<String, String> {
        use std::io::Read as _;
        let options = self.options;
        let folder = options.file.as_deref().and_then(|file| file.parent()).unwrap_or(&options.working_dir);
        let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let folder = folder.canonicalize().map_err(unreadable)?;
        let real = folder.join(path).canonicalize().map_err(unreadable)?;
        if Path::new(path).is_absolute() || !real.starts_with(&folder) {
            return Err("is not in the folder of this one".to_owned());
        }
        if !real.is_file() {
            return Err("is not a file".to_owned());
        }
        let file = std::fs::File::open(&real).map_err(unreadable)?;
        let mut text = String::new();
        let read = file.take(MAX_INSTRUCTION + 1).read_to_string(&mut text).map_err(unreadable)?;
        if read as u64 > MAX_INSTRUCTION {
            return Err(format!("is larger than {MAX_INSTRUCTION} bytes"));
        }
        Ok(text.trim_end().to_owned())
    }

    /// The hooks that stand for a word, as docker-agent has them.
    fn builtins(&self, section: &Section<'_>, name: &Arc<str>) -> Vec<HookGroup> {
        let mut groups = Vec::new();
        let mut add = |event, command: &str, args: &[&str]| {
            let mut hook = HookDefinition::builtin(command, args);
            // The program itself answers for them: what their agent may do is approved with it.
            hook.origin =
                Origin { source: Source::Builtin, agent: Some(name.clone()), ..origin(section, self.options) };
            if self.options.source < Source::Builtin {
                hook.origin.source = self.options.source;
            }
            groups.push(HookGroup { event, matcher: String::new(), hooks: vec![hook] });
        };
        if section.bool("add_date") == Some(true) {
            add(Event::TurnStart, "add_date", &[]);
        }
        if section.bool("add_environment_info") == Some(true) {
            add(Event::SessionStart, "add_environment_info", &[]);
        }
        let files = section.texts("add_prompt_files").unwrap_or_default();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        if !files.is_empty() {
            add(Event::TurnStart, "add_prompt_files", &files);
        }
        if section.bool("redact_secrets").unwrap_or(self.is_docker_agents) {
            for event in [Event::ToolInputTransform, Event::BeforeLlmCall, Event::ToolResponseTransform] {
                add(event, "redact_secrets", &[]);
            }
        }
        groups
    }

    fn skills(&self, section: &Section<'_>) -> Skills {
        let Some(node) = section.node("skills") else {
            return if self.is_docker_agents { Skills::Off } else { Skills::All };
        };
        match &node.value {
            Value::Bool(true) => Skills::All,
            Value::Bool(false) => Skills::Off,
            Value::Seq(items) => {
                let unsupported = |item: &&Node| match &item.value {
                    Value::Str(name) => name.contains("://"),
                    value => matches!(value, Value::Map(_)),
                };
                for item in items.iter().filter(unsupported) {
                    let problem =
                        section.problem(Kind::Unsupported, "skills from addresses and in this file are not read");
                    section.report(problem.at(item.span.clone()).help("put it into a folder with a `SKILL.md`"));
                }
                let names = section.texts("skills").unwrap_or_default();
                match names.iter().any(|name| name == "local") {
                    true if names.len() == 1 => Skills::All,
                    _ => Skills::Only(names.into_iter().filter(|name| name != "local").collect()),
                }
            }
            _ => section.wrong_type("skills", node, "`true`, `false`, or a list of names").unwrap_or_default(),
        }
    }
}

/// `commands`: a mapping, or docker-agent's list of mappings.
fn commands(section: &Section<'_>) -> BTreeMap<String, Command> {
    let Some(node) = section.node("commands") else { return Default::default() };
    let entries: Vec<_> = match &node.value {
        Value::Map(entries) => entries.iter().collect(),
        Value::Seq(items) if items.iter().all(|item| matches!(item.value, Value::Map(_))) => {
            items.iter().flat_map(Node::entries).collect()
        }
        _ => return section.wrong_type("commands", node, "a mapping from names to prompts").unwrap_or_default(),
    };
    let command = |(key, node): &(gatehook_engine::config::Key, Node)| {
        let command = match &node.value {
            Value::Str(prompt) => Command { instruction: prompt.clone(), ..Command::default() },
            _ => {
                let path = format!("{}.commands.{}", section.path, key.text);
                let section = Section::open(section.context, node, path, COMMAND)?;
                docker_agent::refuse_unknown(&section, docker_agent::COMMAND);
                Command {
                    description: section.text("description").map(str::to_owned),
                    instruction: section.text("instruction").unwrap_or_default().to_owned(),
                    agent: section.text("agent").map(Into::into),
                }
            }
        };
        Some((key.text.clone(), command))
    };
    entries.into_iter().filter_map(command).collect()
}

/// Reports names of `fields` that stand for none of `agents`, where all agents that there can be are known.
pub(super) fn refuse_unknown_agents(root: &Section<'_>, agents: &[AgentDefinition]) {
    let Some(node) = root.node("agents") else { return };
    let known = || agents.iter().map(|agent| &*agent.name);
    for (key, node) in node.entries() {
        for field in ["sub_agents", "handoffs", "force_handoff"] {
            let Some(node) = node.get(field) else { continue };
            let items = match &node.value {
                Value::Seq(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for item in items {
                let Value::Str(name) = &item.value else { continue };
                if !known().any(|agent| agent == name) {
                    let path = format!("agents.{}", key.text);
                    let problem = gatehook_engine::config::Diagnostic::new(
                        Kind::UnknownName,
                        path,
                        format!("there is no agent `{name}` in this file"),
                    );
                    let outside = name.contains(['/', ':']);
                    let help = outside.then(|| "agents of registries and addresses are not read".to_owned());
                    root.report(problem.at(item.span.clone()).maybe_help(help.or_else(|| did_you_mean(name, known()))));
                }
            }
        }
    }
}
