//! The tables of the agents' sections: what a file may say of agents, their tools and their servers. To add a field, add
//! a row and read it in the file beside.

use gatehook_engine::config::fields::ENV_POLICY;
use gatehook_engine::config::{Field, Shape, words};

use crate::approval::SafetyMode;

/// Sets of tools that the agent itself has.
pub const BUILTIN: [&str; 5] = ["filesystem", "shell", "fetch", "todo", "think"];
/// The set of an MCP server's tools.
pub const MCP: &str = "mcp";

const MODE_WORDS: &[&str] = &words(&SafetyMode::ALL);
const ENV_POLICY_WORDS: &[&str] = &words(&ENV_POLICY);
const TOOLSET_WORDS: &[&str] = &["filesystem", "shell", "fetch", "todo", "think", MCP];

/// The agents' sections of a file.
pub const FILE: &[Field] = &[
    Field::new("agent", Shape::Table(AGENT), "What holds for every agent that does not say otherwise."),
    Field::new("agents", Shape::Any, "Agents, by name, or a list of them; `root`, else the first, begins.")
        .default("one that has all tools"),
    Field::new("mcp_servers", Shape::NamedTables(SERVER), "MCP servers, by name."),
    Field::new("permissions", Shape::Table(PERMISSIONS), "Tool calls that run, are asked about, or are denied."),
];

/// `agent`.
pub const AGENT: &[Field] = &[
    Field::new("model", Shape::Text, "The model, as in `ollama/llama3`.").default("the first of the local Ollama"),
    Field::new("mode", Shape::Word(MODE_WORDS), "How much runs unasked.")
        .default("what only reads runs, the rest is asked about"),
    Field::new("max_iterations", Shape::Integer, "Calls of the model for one prompt; `0` is without end.")
        .default("without end"),
    Field::new("compaction_threshold", Shape::Number, "Of the model's window so much may be full.").default("0.9"),
    Field::new("sandbox", Shape::Bool, "Programs that tools start can change only the workspace and `folders`.")
        .default("true"),
    Field::new("folders", Shape::Texts, "Folders beside the workspace that tools may use; from the file's folder."),
    Field::new("private_addresses", Shape::Bool, "`fetch` may call this machine and private networks.")
        .default("false"),
    Field::new("maintenance_interval", Shape::Age, "How often `setup` hooks look after a project.").default("24h"),
];

/// One of `agents`.
pub const AGENTS: &[Field] = &[
    Field::new("name", Shape::Text, "Its name, where `agents` is a list."),
    Field::new("model", Shape::Text, "Its model, as in `ollama/llama3`.").default("that of `agent`"),
    Field::new("description", Shape::Text, "What it is good for, for those that may hand it work."),
    Field::new("instruction", Shape::TextOrTexts, "What its model is told first."),
    Field::new("instruction_file", Shape::TextOrTexts, "Files that hold it, in the folder of this one."),
    Field::new("welcome_message", Shape::Text, "What the person is told first."),
    Field::new("toolsets", Shape::Tables(TOOLSET), "What it may call.").default("all tools and all servers"),
    Field::new("sub_agents", Shape::Texts, "Agents that it may give a task."),
    Field::new("handoffs", Shape::Texts, "Agents that it may hand the conversation to."),
    Field::new("force_handoff", Shape::Text, "The agent that takes over whenever this one is done."),
    Field::new("hooks", Shape::Any, "Hooks of this agent alone."),
    Field::new("commands", Shape::Any, "Prompts by name: a text, or `{description, instruction}`."),
    Field::new("max_iterations", Shape::Integer, "Calls of its model for one prompt; `0` is without end.")
        .default("that of `agent`"),
    Field::new("max_consecutive_tool_calls", Shape::Integer, "The same calls so many times in a row end the run.")
        .default("5"),
    Field::new("mode", Shape::Word(MODE_WORDS), "How much runs unasked.").default("that of `agent`"),
    Field::new("permissions", Shape::Table(PERMISSIONS), "Rules of this agent, beside those of its file."),
    Field::new("add_date", Shape::Bool, "Tell its model the date.").default("false"),
    Field::new("add_environment_info", Shape::Bool, "Tell its model where it works.").default("false"),
    Field::new("add_prompt_files", Shape::Texts, "Files whose text its model is told, as in `AGENTS.md`."),
    Field::new("redact_secrets", Shape::Bool, "Take secrets out of what its model and its tools are told.")
        .default("false"),
    Field::new("readonly", Shape::Bool, "Only tools that change nothing.").default("false"),
    Field::new("skills", Shape::Any, "`true`, `false`, or a list of names.").default("true"),
    Field::new("session_compaction", Shape::Bool, "Compact the conversation when it is long.").default("true"),
    Field::new("compaction_threshold", Shape::Number, "Of the model's window so much may be full.")
        .default("that of `agent`"),
    Field::new("compaction_model", Shape::Text, "The model that writes summaries.").default("its own"),
];

/// One of an agent's `toolsets`.
pub const TOOLSET: &[Field] = &[
    Field::new("type", Shape::Word(TOOLSET_WORDS), "Which tools."),
    Field::new("tools", Shape::Texts, "Their names, where not all of them are meant."),
    Field::new("readonly", Shape::Bool, "Only those that change nothing.").default("false"),
    Field::new("instruction", Shape::Text, "What the model is told about them."),
    Field::new("ref", Shape::Text, "The server of `mcp`, one of `mcp_servers`."),
    Field::new("name", Shape::Text, "The name of a server that stands here.").default("that of its program"),
    Field::new("command", Shape::Text, "A server that stands here: its program."),
    Field::new("args", Shape::Texts, "Its arguments."),
    Field::new("env", Shape::TextMap, "Extra variables of it; values may hold `${env.NAME}`."),
    Field::new("working_dir", Shape::Text, "Where it runs, from the workspace.").default("the workspace"),
    Field::new("remote", Shape::Table(REMOTE), "A server that is called over HTTP."),
];

/// A server over HTTP, as docker-agent has it.
pub const REMOTE: &[Field] = &[
    Field::new("url", Shape::Text, "Its address."),
    Field::new("transport_type", Shape::Word(&["streamable"]), "How it is called.").default("streamable"),
    Field::new("headers", Shape::SecretMap, "Extra headers; values may hold `${env.NAME}` and `${file:PATH}`."),
];

/// One of `mcp_servers`.
pub const SERVER: &[Field] = &[
    Field::new("command", Shape::Text, "The program of a server on standard input and output."),
    Field::new("args", Shape::Texts, "Its arguments."),
    Field::new("env", Shape::TextMap, "Extra variables of it; values may hold `${env.NAME}`."),
    Field::new("env_policy", Shape::WordOrTexts(ENV_POLICY_WORDS, "only"), "What it inherits of the environment.")
        .default("minimal"),
    Field::new("working_dir", Shape::Text, "Where it runs, from the workspace.").default("the workspace"),
    Field::new("url", Shape::Text, "The address of a server over HTTP."),
    Field::new("headers", Shape::SecretMap, "Extra headers; values may hold `${env.NAME}` and `${file:PATH}`."),
    Field::new("tools", Shape::Texts, "Its tools, where not all of them are meant."),
    Field::new("startup_timeout", Shape::Duration, "How long it may take until it is ready.").default("30s"),
    Field::new("timeout", Shape::Duration, "How long one call may take.").default("120s"),
    Field::new("enabled", Shape::Bool, "Whether it is used at all.").default("true"),
];

/// `permissions`.
pub const PERMISSIONS: &[Field] = &[
    Field::new("allow", Shape::Texts, "Calls that run unasked, as in `read` or `bash:command=git status`."),
    Field::new("ask", Shape::Texts, "Calls that the person is asked about."),
    Field::new("deny", Shape::Texts, "Calls that do not run."),
];

/// A command that is no text.
pub(super) const COMMAND: &[Field] = &[
    Field::new("description", Shape::Text, "What it is for."),
    Field::new("instruction", Shape::Text, "The prompt."),
    Field::new("agent", Shape::Text, "The agent that is switched to first."),
];
