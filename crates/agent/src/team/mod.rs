//! The agents as files define them: who they are, what they may call, and by which rules.
//!
//! [`read`](read()) takes the agents' sections of one file, and docker-agent's own files as they are. A [`Team`] is
//! what several files say together. Of a project's file nothing is taken but rules that deny or ask, until its owner has
//! approved it ([`TeamFile::settle`]).

mod docker_agent;
pub mod fields;
mod gather;
mod parts;
mod read;
mod server;
mod toolset;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gatehook_engine::HooksConfig;
use gatehook_engine::definition::Origin;
use gatehook_engine::events::Profile;
use gatehook_engine::schema;
use serde_json::{Value, json};

use crate::approval::{Rules, SafetyMode, StandingRules};
use crate::mcp::ServerDefinition;

pub use docker_agent::is_own;
pub use gather::{TeamError, TeamProblem};
pub use parts::{Standing, is_part};
pub use read::{read, sections};

/// An agent that a file defines.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// Its name.
    pub name: Arc<str>,
    /// What it is good for, for those that may hand it work.
    pub description: Arc<str>,
    /// What its model is told first.
    pub instruction: Arc<str>,
    /// What the person is told first.
    pub welcome: Option<Arc<str>>,
    /// Its model, as in `ollama/llama3`; `None` is the team's.
    pub model: Option<Arc<str>>,
    /// What it may call; `None` is all tools and all servers.
    pub toolsets: Option<Vec<Toolset>>,
    /// Agents that it may give a task.
    pub sub_agents: Vec<Arc<str>>,
    /// Agents that it may hand the conversation to.
    pub handoffs: Vec<Arc<str>>,
    /// The agent that takes over whenever this one is done.
    pub force_handoff: Option<Arc<str>>,
    /// Its hooks, beside those that hold for everybody.
    pub hooks: HooksConfig,
    /// Prompts by name.
    pub commands: BTreeMap<String, Command>,
    /// Calls of its model for one prompt; `None` is the team's, 0 without end.
    pub max_iterations: Option<u64>,
    /// The same calls so many times in a row end the run.
    pub max_consecutive_tool_calls: Option<usize>,
    /// How much runs unasked; `None` is the team's.
    pub mode: Option<SafetyMode>,
    /// Its rules, beside those of its file.
    pub permissions: Rules,
    /// Only tools that change nothing.
    pub read_only: bool,
    /// Skills that it may use.
    pub skills: Skills,
    /// Whether its conversation is compacted when it is long.
    pub compacts: bool,
    /// Of the model's window so much may be full; `None` is the team's.
    pub compaction_threshold: Option<f64>,
    /// The model that writes summaries; `None` is its own.
    pub compaction_model: Option<Arc<str>>,
    /// The contract of its file: under docker-agent's its tools are called as that program calls them.
    pub profile: Profile,
    /// Where it is defined.
    pub origin: Origin,
    /// As it is written, for its owner.
    pub written: Arc<Value>,
}

/// A prompt that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// What it is for.
    pub description: Option<String>,
    /// The prompt.
    pub instruction: String,
    /// The agent that is switched to first.
    pub agent: Option<Arc<str>>,
}

/// Skills that an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Skills {
    /// All that there are.
    #[default]
    All,
    /// Those of these names.
    Only(Vec<String>),
    /// None.
    Off,
}

impl Skills {
    /// Whether it may use the one of this name.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|known| known == name),
            Self::Off => false,
        }
    }
}

/// Tools of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// Which.
    pub tools: Tools,
    /// Their names, as their server or this program has them, where not all of them are meant.
    pub only: Vec<String>,
    /// Only those that change nothing.
    pub read_only: bool,
    /// What the model is told about them.
    pub instruction: Option<Arc<str>>,
}

/// Where tools come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tools {
    /// A set of the agent's own, as in `filesystem`.
    Builtin(&'static str),
    /// The server of this name.
    Server(Arc<str>),
}

/// What holds for every agent that does not say otherwise. What is absent was not said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Defaults {
    /// The model, as in `ollama/llama3`.
    pub model: Option<Arc<str>>,
    /// How much runs unasked.
    pub mode: Option<SafetyMode>,
    /// Calls of the model for one prompt; 0 is without end.
    pub max_iterations: Option<u64>,
    /// Of the model's window so much may be full.
    pub compaction_threshold: Option<f64>,
    /// Programs that tools start can change only the workspace and `folders`.
    pub sandbox: Option<bool>,
    /// Folders beside the workspace that tools may use.
    pub folders: Option<Vec<PathBuf>>,
    /// `fetch` may call this machine and private networks.
    pub private_addresses: Option<bool>,
    /// How often `setup` hooks look after a project.
    pub maintenance_interval: Option<Duration>,
}

/// A model that docker-agent's file defines by a name of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDefinition {
    /// As in `openai/gpt-4o`.
    pub id: Arc<str>,
    /// Where it is; `None` is its provider's place.
    pub base_url: Option<String>,
    /// The variable that holds its key.
    pub token_key: Option<String>,
    /// What a million tokens of questions and of answers cost.
    pub prices: Option<(f64, f64)>,
    /// Tokens of its window.
    pub window: Option<u64>,
    /// Settings of the request, by the names that OpenAI's API has for them: `temperature`, `top_p`, `max_tokens`,
    /// `frequency_penalty`, `presence_penalty`.
    pub options: serde_json::Map<String, Value>,
}

/// What one file says of agents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TeamFile {
    /// Its agents, in its order.
    pub agents: Vec<AgentDefinition>,
    /// What holds for all of them.
    pub defaults: Defaults,
    /// Its rules.
    pub permissions: Rules,
    /// Its servers.
    pub servers: Vec<ServerDefinition>,
    /// Its models, where it is docker-agent's.
    pub models: Vec<ModelDefinition>,
    /// Who answers for it, and where its settings stand.
    pub origin: Origin,
    /// `agent` and `permissions` as they are written, for their owner.
    written: Option<Arc<Value>>,
}

/// What all files say together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Team {
    /// The agents, the one that begins first.
    pub agents: Vec<AgentDefinition>,
    /// What holds for all of them.
    pub defaults: Defaults,
    /// The rules that stand before a session begins.
    pub rules: StandingRules,
    /// The servers.
    pub servers: Vec<ServerDefinition>,
    /// Models that have names of their own.
    pub models: Vec<ModelDefinition>,
}

/// The name of the agent that begins.
pub const ROOT: &str = "root";

impl AgentDefinition {
    /// An agent that has all tools, and says nothing of itself.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            description: "".into(),
            instruction: "".into(),
            welcome: None,
            model: None,
            toolsets: None,
            sub_agents: Vec::new(),
            handoffs: Vec::new(),
            force_handoff: None,
            hooks: HooksConfig::default(),
            commands: BTreeMap::new(),
            max_iterations: None,
            max_consecutive_tool_calls: None,
            mode: None,
            permissions: Rules::default(),
            read_only: false,
            skills: Skills::default(),
            compacts: true,
            compaction_threshold: None,
            compaction_model: None,
            profile: Profile::Native,
            origin: Origin::default(),
            written: Arc::default(),
        }
    }
}

impl Team {
    /// The agent that begins.
    pub fn root(&self) -> Option<&AgentDefinition> {
        self.agents.first()
    }

    /// The agent of this name.
    pub fn agent(&self, name: &str) -> Option<&AgentDefinition> {
        self.agents.iter().find(|agent| &*agent.name == name)
    }
}

/// JSON Schema of the agents' sections, by their names.
pub fn schema() -> serde_json::Map<String, Value> {
    let mut file = schema::section(fields::FILE);
    let mut agent = schema::section(fields::AGENTS);
    let prompt = json!({ "anyOf": [{ "type": "string" }, schema::section(fields::COMMAND)] });
    for (name, part) in [
        ("hooks", json!({ "$ref": "#/properties/hooks" })),
        ("commands", json!({ "type": "object", "additionalProperties": prompt })),
        ("skills", json!({ "anyOf": [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }] })),
    ] {
        put(&mut agent, name, part);
    }
    let named = json!({ "type": "object", "minProperties": 1, "additionalProperties": agent });
    let agents = json!({ "anyOf": [named, { "type": "array", "minItems": 1, "items": agent }] });
    put(&mut file, "agents", agents);
    match file.get_mut("properties").map(Value::take) {
        Some(Value::Object(sections)) => sections,
        _ => serde_json::Map::new(),
    }
}

/// Says more of a property than its table does.
fn put(section: &mut Value, name: &str, part: Value) {
    if let (Some(Value::Object(property)), Value::Object(part)) =
        (section.pointer_mut(&format!("/properties/{name}")), part)
    {
        property.extend(part);
    }
}

#[cfg(test)]
mod tests;
