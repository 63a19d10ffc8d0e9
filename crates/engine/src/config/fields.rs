//! The tables of the hooks section: what a file, a group and a hook may say. To add a field, add a row and read it in
//! `draft.rs`.

use crate::definition::{Cache, Contract, EnvPolicy, OnError, Patch, StreamMode, ToolCalls};

use super::import::IMPORT;
use super::section::{Field, Shape, words};

/// What a hook's failure means.
pub const ON_ERROR: [(&str, OnError); 3] =
    [("block", OnError::Block), ("warn", OnError::Warn), ("ignore", OnError::Ignore)];
/// The shape of a webhook's request and reply.
pub const CONTRACT: [(&str, Contract); 11] = Contract::ALL;
/// How `updated_input` is applied.
pub const PATCH: [(&str, Patch); 2] = [("top_level", Patch::TopLevel), ("merge_patch", Patch::MergePatch)];
/// What of a stream is held.
pub const STREAM_MODE: [(&str, StreamMode); 3] =
    [("buffer", StreamMode::Buffer), ("window", StreamMode::Window), ("observe", StreamMode::Observe)];
/// Whether tool calls of a stream are held.
pub const TOOL_CALLS: [(&str, ToolCalls); 2] = [("hold", ToolCalls::Hold), ("pass", ToolCalls::Pass)];
/// What a hook need not see again.
pub const CACHE: [(&str, Cache); 1] = [("content", Cache::Content)];
/// The request of a webhook.
pub const METHOD: [(&str, &str); 3] = [("POST", "POST"), ("PUT", "PUT"), ("PATCH", "PATCH")];
/// The types of hooks that every file may use: how a hook is told of an event, and how it answers.
pub const TYPE: [(&str, [&str; 2]); 6] = [
    (COMMAND, ["on standard input, a process for each event", "by exit code, standard output and standard error"]),
    (WORKER, ["by a line on standard input, in a process that lives on", "by a line on standard output"]),
    (PYTHON, ["as a `dict`, in an interpreter that lives on", "by what it returns: a `dict`, `None` or text"]),
    (WEBHOOK, ["by a request, in the words of its `contract`", "by its response: 2xx with an answer, or with nothing"]),
    (BUILTIN, ["in the process", "in the process"]),
    (MODEL, ["by its `prompt`, filled in", "by a decision as its `schema` has it, or by text"]),
];
/// The environment policies that are a word.
pub const ENV_POLICY: [(&str, &EnvPolicy); 2] = [("inherit", &EnvPolicy::Inherit), ("minimal", &EnvPolicy::Minimal)];

/// The networks that a sandbox leaves to a hook.
pub const NETWORK: [(&str, ()); 1] = [("none", ())];

pub(crate) const COMMAND: &str = "command";
pub(crate) const WORKER: &str = "worker";
pub(crate) const PYTHON: &str = "python";
pub(crate) const WEBHOOK: &str = "webhook";
pub(crate) const BUILTIN: &str = "builtin";
pub(crate) const MODEL: &str = "model";

/// The types that run processes.
pub(crate) const PROCESSES: &[&str] = &[COMMAND, WORKER, PYTHON];

const ON_ERROR_WORDS: &[&str] = &words(&ON_ERROR);
const CONTRACT_WORDS: &[&str] = &words(&CONTRACT);
const PATCH_WORDS: &[&str] = &words(&PATCH);
const STREAM_MODE_WORDS: &[&str] = &words(&STREAM_MODE);
const TOOL_CALLS_WORDS: &[&str] = &words(&TOOL_CALLS);
const CACHE_WORDS: &[&str] = &words(&CACHE);
const METHOD_WORDS: &[&str] = &words(&METHOD);
const NETWORK_WORDS: &[&str] = &words(&NETWORK);
pub(crate) const TYPE_WORDS: &[&str] = &words(&TYPE);
const ENV_POLICY_WORDS: &[&str] = &words(&ENV_POLICY);
pub(crate) const PROFILE_WORDS: &[&str] = &gatehook_events::profile::NAMES;

const ENV_POLICY_SHAPE: Shape = Shape::WordOrTexts(ENV_POLICY_WORDS, "only");

/// What a file says beside its hooks.
pub const FILE: &[Field] = &[
    Field::new("hooks", Shape::Any, "Events and their hooks."),
    Field::new("defaults", Shape::Table(DEFAULTS), "What hooks of this file leave out."),
    Field::new("dialect", Shape::Word(PROFILE_WORDS), "The contract that this file's hooks were written for.")
        .default("native"),
    Field::new(
        "import",
        Shape::Tables(IMPORT),
        "Files of other systems whose hooks run too, as their own contract says.",
    ),
    Field::new("max_concurrent_hooks", Shape::Integer, "How many hooks run at once, in the whole process.")
        .default("twice the processors"),
    Field::new("traces", Shape::Table(TRACES), "Whether dispatches are remembered, where, and for how long."),
    Field::new(
        "required",
        Shape::Any,
        "Names of hooks by event, as in `{pre_tool_use: [guard]}`: while one is not in force, its event is blocked. In a \
         managed or user file.",
    ),
    Field::new(
        "locked",
        Shape::Texts,
        "Settings that no other file, variable or flag changes, as in `[listen]`. In a managed file.",
    ),
];

/// `traces`.
pub const TRACES: &[Field] = &[
    Field::new("enabled", Shape::Bool, "Remember dispatches.")
        .default("true for commands that raise events, false for `serve`"),
    Field::new("path", Shape::Text, "The file that remembers them, SQLite.")
        .default("`gatehook/gatehook.db` below `XDG_STATE_HOME`"),
    Field::new("keep", Shape::Age, "For how long.").default("7d"),
    Field::new("max_rows", Shape::Integer, "How many at most; then the oldest go.").default("100000"),
];

/// What hooks leave out.
pub const DEFAULTS: &[Field] = &[
    Field::new("timeout", Shape::Duration, "How long a hook may take.").default("10s, a model 30s"),
    Field::new("on_error", Shape::Word(ON_ERROR_WORDS), "What a hook's failure means; `block` where that is possible.")
        .default("block where the event can be blocked, else warn"),
    Field::new("env_policy", ENV_POLICY_SHAPE, "What a hook inherits of the environment.")
        .default("inherit; minimal for hooks that need an approval"),
];

/// Hooks that share a matcher.
pub const GROUP: &[Field] = &[
    Field::new(
        "matcher",
        Shape::Text,
        "A regular expression over the event's subject, anchored at both ends; `*` is all.",
    )
    .default("*"),
    Field::new("hooks", Shape::Hooks, "The hooks."),
    Field::new("preempt_yolo", Shape::Bool, "Judge before any standing permission; on `pre_tool_use` only.")
        .default("false"),
];

/// A hook.
pub const HOOK: &[Field] = &[
    Field::new("name", Shape::Text, "A label for people."),
    Field::new("type", Shape::Word(TYPE_WORDS), "What runs."),
    Field::new("command", Shape::Text, "A shell line, or a program where `shell` is false; the name of a builtin.")
        .only(&[COMMAND, WORKER, BUILTIN]),
    Field::new("args", Shape::Texts, "Arguments of a builtin, or of a program without a shell.")
        .only(&[COMMAND, WORKER, BUILTIN]),
    Field::new("shell", Shape::Bool, "Run the command by a shell.").default("true").only(&[COMMAND, WORKER]),
    Field::new("module", Shape::Text, "A module as in `package.module`, or a file as in `.gatehook/guard.py`.")
        .only(&[PYTHON]),
    Field::new("function", Shape::Text, "The function that is called with the event.")
        .default("the last name of `module`")
        .only(&[PYTHON]),
    Field::new("python", Shape::Text, "The interpreter.")
        .default("that of `VIRTUAL_ENV`, else `python3` on `PATH`")
        .only(&[PYTHON]),
    Field::new("workers", Shape::Integer, "How many processes there may be.")
        .default("1; of `python` 2, on one processor 1")
        .only(&[WORKER, PYTHON]),
    Field::new("max_in_flight", Shape::Integer, "Events that a process is given before it has answered the first.")
        .default("1")
        .only(&[WORKER]),
    Field::new(
        "idle_timeout",
        Shape::Duration,
        "How long a process may stand idle before it is ended; `0s` is for ever.",
    )
    .default("10m")
    .only(&[WORKER, PYTHON]),
    Field::new("url", Shape::Text, "Where to send the event: http or https.").only(&[WEBHOOK]),
    Field::new("method", Shape::Word(METHOD_WORDS), "The request's method.").default("POST").only(&[WEBHOOK]),
    Field::new(
        "headers",
        Shape::SecretMap,
        "Extra headers; values may hold `${env.NAME}` and `${file:PATH}`, a path from the file's folder.",
    )
    .only(&[WEBHOOK]),
    Field::new("contract", Shape::Word(CONTRACT_WORDS), "The shape of request and reply.")
        .default("native")
        .only(&[WEBHOOK]),
    Field::new("parameters", Shape::Any, "What requests of a vendor's contract say besides the event.")
        .only(&[WEBHOOK]),
    Field::new("request", Shape::Table(REQUEST), "The request of `contract: mapped`.").only(&[WEBHOOK]),
    Field::new("reply", Shape::Table(REPLY), "What a reply means under `contract: mapped`.").only(&[WEBHOOK]),
    Field::new(
        "secret",
        Shape::Secrets,
        "Signs each request as Standard Webhooks has it, as in `whsec_…`; several while one is replaced.",
    )
    .only(&[WEBHOOK]),
    Field::new("timeout", Shape::Duration, "How long it may take.").default("10s, a model 30s"),
    Field::new("env", Shape::TextMap, "Extra or overriding variables; values may hold `${env.NAME}`."),
    Field::new("env_policy", ENV_POLICY_SHAPE, "What it inherits of the environment.")
        .default("inherit; minimal for hooks that need an approval")
        .only(PROCESSES),
    Field::new("max_memory", Shape::Size, "Memory that each process may have for itself, at least 1 MiB.")
        .default("unlimited")
        .only(PROCESSES),
    Field::new("max_cpu_seconds", Shape::Integer, "Processor time that each process may take, in seconds.")
        .default("unlimited")
        .only(PROCESSES),
    Field::new("max_file_size", Shape::Size, "How large a file may become by what a process writes.")
        .default("unlimited")
        .only(PROCESSES),
    Field::new("sandbox", Shape::Table(SANDBOX), "What the system keeps from its processes.").only(PROCESSES),
    Field::new("user", Shape::Name, "The account whose rights it has, by name or number; for `gatehook` as root.")
        .default("that of `gatehook`")
        .only(PROCESSES),
    Field::new("working_dir", Shape::Text, "Its working directory.").default("the host's"),
    Field::new("on_error", Shape::Word(ON_ERROR_WORDS), "What its failure means.")
        .default("block where the event can be blocked, else warn"),
    Field::new(
        "strict_output",
        Shape::Bool,
        "Unknown fields, and fields that the event does not honour, are failures.",
    )
    .default("false"),
    Field::new("async", Shape::Bool, "Nobody waits for it, and it decides nothing.").default("false"),
    Field::new(
        "when",
        Shape::PatternMap,
        "It runs only where all of these fields match; a field that is missing matches.",
    ),
    Field::new("patch", Shape::Word(PATCH_WORDS), "How `updated_input` is applied.").default("top_level"),
    Field::new("include_images", Shape::Bool, "Show it image data, not only its fingerprint.").default("false"),
    Field::new("model", Shape::Text, "The model that judges.").only(&[MODEL]),
    Field::new("prompt", Shape::Text, "The template of the question.").only(&[MODEL]),
    Field::new("schema", Shape::Text, "The shape of the model's reply.").only(&[MODEL]),
    Field::new("stream", Shape::Table(STREAM), "How a streamed answer is shown to it; on `post_inference` only."),
    Field::new(
        "concurrent",
        Shape::Bool,
        "The model works while it judges; on `pre_inference` only, and it cannot rewrite.",
    )
    .default("false"),
    Field::new(
        "cache",
        Shape::Word(CACHE_WORDS),
        "`content`: messages that it has let pass are not shown to it again.",
    ),
    Field::new("dialect", Shape::Word(PROFILE_WORDS), "The contract it was written for.").default("the file's"),
];

/// What the system keeps from a hook's processes.
pub const SANDBOX: &[Field] = &[
    Field::new("network", Shape::Word(NETWORK_WORDS), "`none`: no TCP port can be bound or connected to.")
        .default("all of it"),
    Field::new(
        "write",
        Shape::Texts,
        "Files and folders that can be changed, and nothing else can, but `/dev/null`; from `working_dir`.",
    )
    .default("what its user may"),
    Field::new("required", Shape::Bool, "A system that cannot do this is an error; without, a warning.")
        .default("true"),
];

/// How a streamed answer is shown to a hook.
pub const STREAM: &[Field] = &[
    Field::new("mode", Shape::Word(STREAM_MODE_WORDS), "What is held until it has judged."),
    Field::new("thinking", Shape::Word(STREAM_MODE_WORDS), "The same for thinking.").default("that of `mode`"),
    Field::new("tool_calls", Shape::Word(TOOL_CALLS_WORDS), "Whether each tool call waits until it is judged.")
        .default("hold"),
    Field::new("size", Shape::Integer, "Bytes of a window.").default("1024"),
    Field::new("max_wait", Shape::Duration, "How long a window may fill.").default("50ms"),
    Field::new("overlap", Shape::Integer, "Bytes that a window shares with the one before; less than `size`.")
        .default("256, of a small window half"),
    Field::new("holdback", Shape::Integer, "Characters at the end of a window that stay held for the next.")
        .default("0"),
];

/// The request of a mapped contract.
pub const REQUEST: &[Field] =
    &[Field::new("body", Shape::Json, "The body: any value; its texts may hold fields, as in `{{ .output_text }}`.")];

/// What a reply means under a mapped contract.
pub const REPLY: &[Field] = &[
    Field::new("block_when", Shape::Tables(RULE), "It blocks where one of these holds."),
    Field::new("block_status", Shape::Texts, "Statuses of HTTP that block; all others but 2xx are failures.")
        .default("none"),
    Field::new("ask_when", Shape::Tables(RULE), "A person decides where one of these holds."),
    Field::new("allow_when", Shape::Tables(RULE), "One of these must hold where none blocks or asks.").default("any"),
    Field::new("reason", Shape::Text, "The place of the reason, as in `/result/why`."),
    Field::new("rewrite", Shape::Table(REWRITE), "The place of rewritten text; missing or null is no rewrite."),
];

/// Where rewritten text stands.
pub const REWRITE: &[Field] = &[
    Field::new("text", Shape::Text, "The place of one text, for `{{ .text }}`."),
    Field::new("texts", Shape::Text, "The place of a list of texts, for `{{ .texts }}`."),
];

/// A condition on a reply.
pub const RULE: &[Field] = &[
    Field::new("path", Shape::Text, "A JSON pointer, in which `*` is every item of a list."),
    Field::new("is", Shape::Json, "It is this boolean, number or text."),
    Field::new("in", Shape::Json, "It is one of this list."),
    Field::new("at_least", Shape::Number, "It is a number, and not below this one."),
    Field::new("matches", Shape::Text, "It is text that fits this pattern as a whole."),
    Field::new("exists", Shape::Bool, "It is there and not null, or is not."),
    Field::new("optional", Shape::Bool, "What is missing does not hold, instead of being a failure.").default("false"),
];

/// The fields of a docker-agent hook. Each may stand on a hook of any type.
pub(crate) const DOCKER_AGENT: &[&str] = &[
    "name",
    "type",
    "command",
    "args",
    "timeout",
    "env",
    "working_dir",
    "on_error",
    "strict_output",
    "model",
    "prompt",
    "schema",
];

/// Fields of the design that this version does not act on, and therefore does not take.
pub(crate) const LATER: &[&str] = &["mode", "retries"];

/// What a condition may name, beside `tool_input.…`.
pub const CONDITIONS: &[&str] = &["agent", "model", "route", "key", "plane"];
