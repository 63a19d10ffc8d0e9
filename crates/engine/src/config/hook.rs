//! One hook judged, in docker-agent's order: `on_error`, `timeout`, `type`, what the type needs. Then what only native
//! hooks are held to.

use std::sync::Arc;
use std::time::Duration;

use gatehook_events::{Event, Profile, Rewrite};
use serde_json::{Map, Value as Json};

use super::DiagnosticKind as Kind;
use super::draft::{Draft, types};
use super::fields::{BUILTIN, COMMAND, MODEL, ON_ERROR, PYTHON, WEBHOOK, WORKER};
use super::hooks::{ReadOptions, pattern_help, place_within};
use super::{CONDITIONS, duration, model, pattern, program, reference, suggest, webhook};
use crate::definition::{
    CommandDefinition, Condition, EnvPolicy, HandlerDefinition, HookDefinition, OnError, Origin, Patch,
    PythonDefinition, WorkerDefinition,
};

/// Fields that hooks of all types share; an embedder's type gets all others as they stand.
const COMMON: &[&str] = &[
    "name",
    "type",
    "timeout",
    "env",
    "env_policy",
    "working_dir",
    "on_error",
    "strict_output",
    "async",
    "when",
    "patch",
    "include_images",
    "stream",
    "concurrent",
    "cache",
    "dialect",
];

/// The hook, unless something is wrong with it, which is reported.
pub(crate) fn judge(event: Event, draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HookDefinition> {
    let on_error = on_error(event, draft, options);
    let timeout = timeout(draft, options);
    let handler = handler(event, draft, options);
    let when = conditions(draft);
    let env = reference::environment(draft, options);
    if draft.profile == Profile::Native {
        refuse_without_effect(event, draft);
    }
    let section = &draft.section;
    let is_foreign = options.source.needs_approval();
    let env_policy = draft.env_policy.clone().or_else(|| options.defaults.env_policy.clone());
    Some(HookDefinition {
        version: None,
        name: draft.name.filter(|name| !name.is_empty()).map(str::to_owned),
        profile: draft.profile,
        handler: handler?,
        timeout: timeout.or(options.defaults.timeout),
        env: env?,
        env_policy: env_policy.unwrap_or(if is_foreign { EnvPolicy::Minimal } else { EnvPolicy::Inherit }),
        confinement: draft.confinement.clone(),
        working_dir: draft.working_dir.filter(|dir| !dir.is_empty()).map(str::to_owned),
        on_error,
        strict_output: draft.strict_output,
        observer: draft.observer,
        when,
        patch: draft.patch,
        include_images: draft.include_images,
        stream: draft.stream,
        concurrent: draft.concurrent,
        cache: draft.cache,
        ignored: ignored(draft),
        switched_off: None,
        written: Some(Arc::new(section.node.to_json())),
        seal: None,
        origin: Origin {
            source: options.source,
            file: options.file.clone(),
            line: section.context.document.line(section.head().start),
            agent: options.agent.clone(),
            skill: None,
        },
    })
}

fn on_error(event: Event, draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<OnError> {
    let blocks = event.capabilities(draft.profile).is_some_and(|capabilities| capabilities.blocks);
    let default = options.defaults.on_error.filter(|on_error| blocks || *on_error != OnError::Block);
    match draft.on_error.filter(|word| !word.is_empty()) {
        None => default,
        Some(word) if options.is_lenient(draft.profile) => {
            ON_ERROR.iter().find(|(known, _)| *known == word).map(|(_, it)| *it)
        }
        Some(word) => draft.section.value_of(Kind::InvalidOnError, "on_error", word, &ON_ERROR),
    }
}

fn timeout(draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<Duration> {
    let seconds = draft.timeout?;
    let report = |kind, message: &str, help: &str| {
        let problem = draft.section.problem(kind, message).at(draft.section.place("timeout"));
        draft.section.report(problem.help(help));
    };
    if seconds < 0.0 {
        if !options.is_lenient(draft.profile) {
            report(Kind::NegativeTimeout, "a timeout cannot be negative", "leave it out for the default");
        }
        return None;
    }
    if seconds == 0.0 {
        if draft.profile == Profile::Native {
            report(Kind::ZeroTimeout, "a timeout of 0 leaves no time to run", "leave it out for the default");
        }
        return None;
    }
    let timeout = duration::of_seconds(seconds);
    if timeout.is_none() {
        report(Kind::InvalidValue, "this timeout is longer than a year", "choose a shorter one");
    }
    timeout
}

fn handler(event: Event, draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let section = &draft.section;
    let Some(kind) = draft.kind.filter(|kind| !kind.is_empty()) else {
        if !options.validate {
            return Some(other(draft, ""));
        }
        if section.node("type").is_none_or(|node| matches!(&node.value, super::Value::Str(kind) if kind.is_empty())) {
            let help = format!("say what runs: {}", suggest::one_of("", &types(draft.profile, options)));
            section.report(section.problem(Kind::TypeRequired, "a hook needs a `type`").at(section.head()).help(help));
        }
        return None;
    };
    match kind {
        COMMAND => command(draft, options).map(HandlerDefinition::Command),
        WORKER if is_ours(draft.profile) => command(draft, options).map(|command| worker(draft, command)),
        PYTHON if is_ours(draft.profile) => python(draft),
        BUILTIN => builtin(draft, options),
        MODEL => model::read(event, draft, options),
        WEBHOOK if is_ours(draft.profile) => webhook::read(event, draft, options),
        kind if draft.is_custom(options) || !options.validate => Some(other(draft, kind)),
        kind => {
            let problem = section.problem(Kind::UnsupportedType, format!("there is no type `{kind}`"));
            let problem = problem.help(suggest::one_of(kind, &types(draft.profile, options)));
            section.report(problem.at(section.place("type")));
            None
        }
    }
}

/// Whether hooks of this profile stand in our own files as native ones do.
pub(super) fn is_ours(profile: Profile) -> bool {
    profile == Profile::Native || profile.spec().is_foreign
}

/// Text that must be there. What has a wrong type was reported already.
pub(super) fn required<'a>(
    draft: &Draft<'a>,
    name: &str,
    text: Option<&'a str>,
    kind: Kind,
    message: &str,
) -> Option<&'a str> {
    let found = text.filter(|text| !text.trim().is_empty());
    let section = &draft.section;
    let is_wrong_type = section.node(name).is_some() && text.is_none();
    if draft.is_unchecked && !is_wrong_type {
        return Some(text.unwrap_or_default());
    }
    if found.is_none() && !is_wrong_type {
        let place = section.node(name).map_or_else(|| section.place("type"), |node| node.span.clone());
        section.report(section.problem(kind, message).at(place));
    }
    found
}

fn other(draft: &Draft<'_>, kind: &str) -> HandlerDefinition {
    HandlerDefinition::Other { kind: kind.to_owned(), fields: fields(draft, |name| !COMMON.contains(&name)) }
}

/// What tells a docker-agent hook apart though its type does not read it.
fn ignored(draft: &Draft<'_>) -> Map<String, Json> {
    match draft.kind {
        Some(kind @ (COMMAND | BUILTIN | MODEL)) if draft.profile != Profile::Native => {
            let own: &[&str] = if kind == MODEL { &["model", "prompt", "schema"] } else { &["command", "args"] };
            let mut ignored = fields(draft, |name| !COMMON.contains(&name) && !own.contains(&name));
            // Empty and absent are the same.
            ignored.retain(|_, value| !value.is_null() && value != "");
            // Hooks are told apart by what is written, not by what a variable holds today.
            if draft.env.iter().any(|(_, text, _)| text.contains("${env.")) {
                ignored.extend(fields(draft, |name| name == "env"));
            }
            ignored
        }
        _ => Map::new(),
    }
}

fn fields(draft: &Draft<'_>, wanted: impl Fn(&str) -> bool) -> Map<String, Json> {
    let entries = draft.section.node.entries().iter().filter(|(key, _)| wanted(&key.text));
    entries.map(|(key, node)| (key.text.clone(), node.to_json())).collect()
}

fn command(draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<CommandDefinition> {
    let message = format!("a {} hook needs a `command`", draft.kind.unwrap_or(COMMAND));
    let command = required(draft, "command", draft.command, Kind::CommandRequired, &message)?;
    let args = draft.args.clone();
    if draft.shell {
        return Some(CommandDefinition { command: command.to_owned(), args, shell: true });
    }
    let section = &draft.section;
    match program::resolve(command, draft.working_dir, options) {
        Ok(program) => Some(CommandDefinition { command: program, args, shell: false }),
        Err(cause) => {
            let problem = section.problem(Kind::ProgramNotFound, format!("the program {cause}"));
            let is_line = command.contains(' ');
            let help = is_line.then(|| "put arguments into `args`, or leave `shell: false` out".to_owned());
            section.report(problem.at(section.place("command")).maybe_help(help));
            None
        }
    }
}

fn worker(draft: &Draft<'_>, command: CommandDefinition) -> HandlerDefinition {
    let default = WorkerDefinition::new(command);
    HandlerDefinition::Worker(WorkerDefinition {
        workers: draft.workers.unwrap_or(default.workers),
        max_in_flight: draft.max_in_flight.unwrap_or(default.max_in_flight),
        idle_timeout: draft.idle_timeout.unwrap_or(default.idle_timeout),
        ..default
    })
}

/// What it names is looked for when its handler is made.
fn python(draft: &Draft<'_>) -> Option<HandlerDefinition> {
    let message = "a python hook needs a `module`";
    let module = required(draft, "module", draft.module, Kind::FieldRequired, message)?;
    let default = PythonDefinition::new(module, draft.function);
    Some(HandlerDefinition::Python(PythonDefinition {
        python: draft.python.map(str::to_owned),
        workers: draft.workers.unwrap_or(default.workers),
        idle_timeout: draft.idle_timeout.unwrap_or(default.idle_timeout),
        ..default
    }))
}

fn builtin(draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let message = "a builtin hook names its builtin in `command`";
    let name = required(draft, "command", draft.command, Kind::BuiltinNameRequired, message)?;
    let section = &draft.section;
    if let Some(known) = options.builtins.filter(|known| !known.contains(&name)) {
        // docker-agent finds out at dispatch.
        if draft.profile == Profile::Native {
            let problem = section.problem(Kind::UnknownBuiltin, format!("there is no builtin `{name}`"));
            section.report(problem.at(section.place("command")).help(suggest::one_of(name, known)));
            return None;
        }
    }
    Some(HandlerDefinition::Builtin { command: name.to_owned(), args: draft.args.clone() })
}

fn conditions(draft: &Draft<'_>) -> Vec<Condition> {
    let section = &draft.section;
    for (key, text, span) in &draft.when {
        let field = key.text.as_str();
        let argument = field.strip_prefix("tool_input.");
        if !CONDITIONS.contains(&field) && argument.is_none_or(str::is_empty) {
            let problem = section.problem(Kind::InvalidValue, format!("a condition cannot name `{field}`"));
            let known: Vec<&str> = CONDITIONS.iter().chain(&["tool_input.NAME"]).copied().collect();
            section.report(problem.at(key.span.clone()).help(suggest::one_of(field, &known)));
        }
        if let Err(error) = pattern::check(text, None) {
            let place = place_within(section.context.document, span, text, &error.span);
            let message = format!("the condition on `{field}` is not a regular expression: {error}");
            section.report(section.problem(Kind::InvalidPattern, message).at(place).help(pattern_help(text)));
        }
    }
    let conditions = draft.when.iter();
    conditions.map(|(key, pattern, _)| Condition { field: key.text.clone(), pattern: pattern.clone() }).collect()
}

/// What a native hook says that would change nothing.
fn refuse_without_effect(event: Event, draft: &Draft<'_>) {
    let section = &draft.section;
    let rewrites = event.capabilities(draft.profile).and_then(|capabilities| capabilities.rewrites);
    let is_command = matches!(draft.kind, Some(COMMAND | WORKER));
    let name = event.name();
    let rules = [
        (
            "args",
            is_command && draft.shell && !draft.args.is_empty(),
            "a shell line takes no `args`".to_owned(),
            "add `shell: false` to run the program itself",
        ),
        (
            "on_error",
            draft.observer && draft.on_error == Some("block"),
            "nobody waits for an `async` hook".to_owned(),
            "use `warn` or `ignore`, or remove `async`",
        ),
        (
            "patch",
            draft.patch != Patch::TopLevel && rewrites != Some(Rewrite::ToolInput),
            format!("hooks of `{name}` do not rewrite a tool's arguments"),
            "remove `patch`",
        ),
        (
            "stream",
            draft.stream.is_some() && event != Event::PostInference,
            format!("`{name}` sees no stream"),
            "only `post_inference` does",
        ),
        (
            "concurrent",
            draft.concurrent && event != Event::PreInference,
            format!("no model can be asked while hooks of `{name}` judge"),
            "only `pre_inference` has such hooks",
        ),
        (
            "concurrent",
            draft.concurrent && draft.observer && event == Event::PreInference,
            "nobody waits for an `async` hook".to_owned(),
            "remove `concurrent`; or remove `async`, so that its verdict counts",
        ),
        (
            "cache",
            draft.cache.is_some() && !has_content(event),
            format!("`{name}` has neither messages nor a tool result to remember"),
            "it belongs to `pre_inference`, `before_llm_call` and `tool_response_transform`",
        ),
        (
            "cache",
            draft.cache.is_some() && draft.observer && has_content(event),
            "an `async` hook is shown every event as it is".to_owned(),
            "remove `cache`; or remove `async`, so that its verdict counts",
        ),
    ];
    for (field, applies, message, help) in rules {
        if applies {
            section.report(section.problem(Kind::MisplacedField, message).at(section.place(field)).help(help));
        }
    }
}

/// Whether the event has messages or a tool result that the next call sends again.
fn has_content(event: Event) -> bool {
    matches!(event, Event::PreInference | Event::BeforeLlmCall | Event::ToolResponseTransform)
}
