//! Which builtins there are.

use gatehook_events::Event;
use gatehook_events::Event::{
    AfterLlmCall, BeforeLlmCall, OnAgentSwitch, PermissionRequest, PostInference, PostToolUse, PreInference,
    PreToolUse, SessionEnd, SessionStart, Stop, ToolGuard, ToolInputTransform, ToolResponseTransform, TurnEnd,
    TurnStart, UserPromptSubmit,
};

use super::{
    Make, add_context, add_date, add_directory_listing, add_environment_info, add_git_diff, add_git_status,
    add_prompt_files, add_recent_commits, add_user_info, allow_tools, audit_log, block_patterns, cache_response,
    http_post, limit_large_tool_results, load_context_files, loop_guard, max_cost, max_iterations, protect_files,
    rate_limit, redact_pii, redact_secrets, safer_shell, snapshot, unload,
};

/// One builtin.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// The hook's `command`.
    pub name: &'static str,
    /// Makes one, and checks its arguments.
    pub make: Make,
    /// Where it has something to do; empty is everywhere.
    pub events: &'static [Event],
    /// What it does.
    pub doc: &'static str,
    /// What its arguments are.
    pub args: &'static str,
}

const TOOL_CALLS: &[Event] = &[ToolInputTransform, ToolGuard, PreToolUse, PermissionRequest, PostInference];
const CALLS: &[Event] = &[PreInference, BeforeLlmCall, ToolGuard, PreToolUse, UserPromptSubmit];

/// All builtins, by name.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "add_context",
        make: add_context::make,
        events: &[SessionStart, TurnStart, UserPromptSubmit, PostToolUse],
        doc: "Adds texts with fields of the event in them, as in `{{ .ToolName }}`.",
        args: "Templates; one that comes to nothing is left out.",
    },
    Builtin {
        name: "add_date",
        make: add_date::make,
        events: &[TurnStart],
        doc: "Tells the model the date.",
        args: "None.",
    },
    Builtin {
        name: "add_directory_listing",
        make: add_directory_listing::make,
        events: &[SessionStart],
        doc: "Tells the model which files there are in the working directory, 100 at most.",
        args: "None.",
    },
    Builtin {
        name: "add_environment_info",
        make: add_environment_info::make,
        events: &[SessionStart],
        doc: "Tells the model working directory, system, architecture, shell, and whether it is in a repository.",
        args: "None.",
    },
    Builtin {
        name: "add_git_diff",
        make: add_git_diff::make,
        events: &[TurnStart],
        doc: "Tells the model what has changed since the last commit, in 4 KiB at most.",
        args: "`full` for the changes themselves instead of their size.",
    },
    Builtin {
        name: "add_git_status",
        make: add_git_status::make,
        events: &[TurnStart],
        doc: "Tells the model branch and changed files, in 4 KiB at most.",
        args: "None.",
    },
    Builtin {
        name: "add_prompt_files",
        make: add_prompt_files::make,
        events: &[TurnStart],
        doc: "Gives the model instructions from files: the nearest of each name on the way up, and that of the home \
              directory.",
        args: "Names; `--depth=N` before them also lists the ones in folders below.",
    },
    Builtin {
        name: "add_recent_commits",
        make: add_recent_commits::make,
        events: &[SessionStart],
        doc: "Tells the model the last commits, a line each.",
        args: "How many; 10 by default.",
    },
    Builtin {
        name: "add_user_info",
        make: add_user_info::make,
        events: &[SessionStart],
        doc: "Tells the model the user's name and the host's.",
        args: "None.",
    },
    Builtin {
        name: "allow_tools",
        make: allow_tools::make,
        events: TOOL_CALLS,
        doc: "Denies every tool whose name fits none of its arguments.",
        args: "Patterns that must fit the whole name.",
    },
    Builtin {
        name: "audit_log",
        make: audit_log::make,
        events: &[],
        doc: "Appends one JSON line for each event to a file; texts stand there as SHA-256.",
        args: "The file.",
    },
    Builtin {
        name: "block_patterns",
        make: block_patterns::make,
        events: &[],
        doc: "Denies texts in which one of its arguments is found.",
        args: "Patterns; a first group with a name names one, as in `(?<codename>falcon)`.",
    },
    Builtin {
        name: "cache_response",
        make: cache_response::make,
        events: &[Stop],
        doc: "Keeps the answer to the user's question in a file, for a host that looks there before it calls the model.",
        args: "The file, by default `gatehook/responses.jsonl` in the state directory; `case_sensitive`; `keep_blanks`.",
    },
    Builtin {
        name: "http_post",
        make: http_post::make,
        events: &[],
        doc: "Posts a fixed text, or the event itself, to an address. What becomes of it decides nothing.",
        args: "The address; the body, `@event` for the event's payload.",
    },
    Builtin {
        name: "limit_large_tool_results",
        make: limit_large_tool_results::make,
        events: &[ToolResponseTransform, PostToolUse, SessionEnd],
        doc: "Puts tool results over 50 KiB or 2,000 lines into a file, and shows their end, or the beginning of what \
              `read_file` read. At `session_end` the files go.",
        args: "None.",
    },
    Builtin {
        name: "load_context_files",
        make: load_context_files::make,
        events: &[SessionStart, TurnStart],
        doc: "Gives the model the context files of all folders from the repository's to the working directory, but \
              those that a `.ollamaignore` names.",
        args: "Names; `OLLAMA.md`, `AGENTS.md` and `CLAUDE.md` by default.",
    },
    Builtin {
        name: "loop_guard",
        make: loop_guard::make,
        events: &[PreInference, BeforeLlmCall, PostInference, ToolGuard, PreToolUse],
        doc: "Blocks a model that makes the same tool calls again and again.",
        args: "How many times in a row are too many, 5 by default; then patterns of tools that poll.",
    },
    Builtin {
        name: "max_cost",
        make: max_cost::make,
        events: &[AfterLlmCall, PostInference, BeforeLlmCall, PreInference],
        doc: "Sums what a session's calls cost (`after_llm_call`, `post_inference`), and blocks the next one \
              (`before_llm_call`, `pre_inference`) once the cap is reached.",
        args: "The cap, as in `1.50`.",
    },
    Builtin {
        name: "max_iterations",
        make: max_iterations::make,
        events: &[BeforeLlmCall],
        doc: "Blocks model calls of a run beyond a number.",
        args: "The number.",
    },
    Builtin {
        name: "protect_files",
        make: protect_files::make,
        events: TOOL_CALLS,
        doc: "Denies tool calls that name keys, `.env*`, `.git`, or Gatehook's own configuration, also through links and \
              inside of shell lines.",
        args: "More patterns, as in `.gitignore`; `!` takes out again.",
    },
    Builtin {
        name: "rate_limit",
        make: rate_limit::make,
        events: CALLS,
        doc: "Blocks what comes too often, over a window that moves.",
        args: "The rate, as in `20/minute` or `5/10s`; what it counts by: `session` by default, `key`, `address`, \
               `user`, `tool`, `model`, `agent`, several of them, or `all` together.",
    },
    Builtin {
        name: "redact_pii",
        make: redact_pii::make,
        events: &[],
        doc: "Replaces personal data: in requests by `<EMAIL_1>`, `<CARD_2>` and so on, which become the values again \
              in what is answered; elsewhere by `<EMAIL>`.",
        args: "Kinds: `email`, `card`, `iban`, `ssn`, `phone`, `ip`; all by default.",
    },
    Builtin {
        name: "redact_secrets",
        make: redact_secrets::make,
        events: &[],
        doc: "Replaces secrets by `[REDACTED]`.",
        args: "None.",
    },
    Builtin {
        name: "safer_shell",
        make: safer_shell::make,
        events: TOOL_CALLS,
        doc: "Labels shell lines `safe`, `unknown` or `destructive`, and decides by that.",
        args: "`label` decides nothing; `strict` asks always; `balanced` (default) asks about what is not safe; \
               `restricted` denies it; `destructive` asks about that alone.",
    },
    Builtin {
        name: "snapshot",
        make: snapshot::make,
        events: &[SessionStart, TurnStart, TurnEnd, PreToolUse, PostToolUse, SessionEnd],
        doc: "Keeps checkpoints of the worktree outside of its repository, so that steps can be undone.",
        args: "None.",
    },
    Builtin {
        name: "unload",
        make: unload::make,
        events: &[OnAgentSwitch],
        doc: "Asks the model runner to unload the models of the agent that is left.",
        args: "None.",
    },
];
