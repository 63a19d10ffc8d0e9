//! One hook judged, in docker-agent's order: `on_error`, `timeout`, `type`, what the type needs. Then what only native
//! hooks are held to.

use std::time::Duration;

use gatehook_events::{Decides, Event, Profile, Rewrite};
use serde_json::{Map, Value as Json};
use url::Url;

use super::DiagnosticKind as Kind;
use super::draft::{Draft, types};
use super::fields::{BUILTIN, COMMAND, MODEL, ON_ERROR, WEBHOOK};
use super::hooks::{ReadOptions, pattern_help, place_in_lines, place_within};
use super::{CONDITIONS, duration, pattern, program, reference, suggest};
use crate::definition::{
    CommandDefinition, Condition, Contract, EnvPolicy, HandlerDefinition, HookDefinition, ModelDefinition, OnError,
    Origin, Patch, Source, WebhookDefinition,
};
use crate::handlers::model::PRE_TOOL_USE_DECISION;
use crate::template::Template;

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
    let workspace = options.source == Source::Workspace;
    let env_policy = draft.env_policy.clone().or_else(|| options.defaults.env_policy.clone());
    Some(HookDefinition {
        version: None,
        name: draft.name.filter(|name| !name.is_empty()).map(str::to_owned),
        profile: draft.profile,
        handler: handler?,
        timeout: timeout.or(options.defaults.timeout),
        env: env?,
        env_policy: env_policy.unwrap_or(if workspace { EnvPolicy::Minimal } else { EnvPolicy::Inherit }),
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
        origin: Origin {
            source: options.source,
            file: options.file.clone(),
            line: section.context.document.line(section.head().start),
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
        COMMAND => command(draft, options),
        BUILTIN => builtin(draft, options),
        MODEL => model(event, draft, options),
        WEBHOOK if draft.profile == Profile::Native => webhook(event, draft, options),
        kind if draft.is_custom(options) || !options.validate => Some(other(draft, kind)),
        kind => {
            let problem = section.problem(Kind::UnsupportedType, format!("there is no type `{kind}`"));
            let problem = problem.help(suggest::one_of(kind, &types(draft.profile, options)));
            section.report(problem.at(section.place("type")));
            None
        }
    }
}

/// Text that must be there. What has a wrong type was reported already.
fn required<'a>(draft: &Draft<'a>, name: &str, text: Option<&'a str>, kind: Kind, message: &str) -> Option<&'a str> {
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

fn command(draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let message = "a command hook needs a `command`";
    let command = required(draft, "command", draft.command, Kind::CommandRequired, message)?;
    let args = draft.args.clone();
    if draft.shell {
        return Some(HandlerDefinition::Command(CommandDefinition { command: command.to_owned(), args, shell: true }));
    }
    let section = &draft.section;
    match program::resolve(command, draft.working_dir, options) {
        Ok(program) => Some(HandlerDefinition::Command(CommandDefinition { command: program, args, shell: false })),
        Err(cause) => {
            let problem = section.problem(Kind::ProgramNotFound, format!("the program {cause}"));
            let is_line = command.contains(' ');
            let help = is_line.then(|| "put arguments into `args`, or leave `shell: false` out".to_owned());
            section.report(problem.at(section.place("command")).maybe_help(help));
            None
        }
    }
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

fn model(event: Event, draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let model = required(draft, "model", draft.model, Kind::ModelRequired, "a model hook needs a `model`");
    let prompt = required(draft, "prompt", draft.prompt, Kind::PromptRequired, "a model hook needs a `prompt`");
    let schema = draft.schema.unwrap_or_default();
    // docker-agent finds out at dispatch.
    if let Some(prompt) = prompt.filter(|_| draft.profile == Profile::Native) {
        check_prompt(draft, prompt);
        check_schema(event, draft, schema, options);
    }
    let (model, prompt, schema) = (model?.to_owned(), prompt?.to_owned(), schema.to_owned());
    Some(HandlerDefinition::Model(ModelDefinition { model, prompt, schema }))
}

fn check_prompt(draft: &Draft<'_>, prompt: &str) {
    let section = &draft.section;
    if let Err(error) = Template::parse(prompt) {
        let place = place_in_lines(section.context.document, &section.place("prompt"), prompt, error.offset);
        let problem = section.problem(Kind::InvalidTemplate, format!("the prompt cannot be read: {error}"));
        section.report(problem.at(place));
    }
}

/// A reply that nothing would come of is a guard that never guards.
fn check_schema(event: Event, draft: &Draft<'_>, schema: &str, options: &ReadOptions<'_>) {
    let section = &draft.section;
    if let Some(known) = options.schemas.filter(|known| !schema.is_empty() && !known.contains(&schema)) {
        let problem = section.problem(Kind::UnknownSchema, format!("there is no schema `{schema}`"));
        section.report(problem.at(section.place("schema")).help(suggest::one_of(schema, known)));
        return;
    }
    let Some(able) = event.capabilities(draft.profile) else { return };
    let decides = able.decides != Decides::No;
    let (applies, lacks) = match schema {
        "" => (!able.context, "context"),
        PRE_TOOL_USE_DECISION => (!decides, "permission decision"),
        _ => (false, ""),
    };
    if applies {
        let problem = section.problem(Kind::MisplacedField, format!("`{}` takes no {lacks}", event.name()));
        let help = if schema.is_empty() && decides {
            format!("add `schema: {PRE_TOOL_USE_DECISION}` for a verdict")
        } else {
            "nothing would come of the reply".to_owned()
        };
        let place = if schema.is_empty() { section.place("type") } else { section.place("schema") };
        section.report(problem.at(place).help(help));
    }
}

fn webhook(event: Event, draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let section = &draft.section;
    let url = required(draft, "url", draft.url, Kind::UrlRequired, "a webhook needs a `url`");
    let headers = reference::headers(draft, options);
    let is_inference = matches!(event, Event::PreInference | Event::PostInference);
    if draft.contract == Contract::Ollama && !is_inference {
        let message = format!("the contract `ollama` has no `{}`", event.name());
        let problem = section.problem(Kind::ContractUnsupported, message).at(section.place("contract"));
        section.report(problem.help("it knows `pre_inference` and `post_inference`"));
    }
    let has_user = |url: &str| Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some());
    if let Some(url) = url.filter(|url| has_user(url) || check_url(url).is_err()) {
        conceal_user_information(draft, url);
    }
    if let Some(Err(cause)) = url.map(check_url) {
        section.report(section.problem(Kind::InvalidUrl, cause).at(section.place("url")));
    }
    let (method, contract) = (draft.method.to_owned(), draft.contract);
    Some(HandlerDefinition::Webhook(WebhookDefinition { url: url?.to_owned(), method, headers: headers?, contract }))
}

/// Keeps user information out of reports where an odd address hides it from their own look for it.
fn conceal_user_information(draft: &Draft<'_>, url: &str) {
    if let (Some(at), Some(node)) = (url.rfind('@'), draft.section.node("url")) {
        let document = draft.section.context.document;
        draft.section.context.diagnostics.conceal(place_within(document, &node.span, url, &(0..at)));
    }
}

/// What is wrong with an address, without its user information.
pub(crate) fn check_url(text: &str) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| format!("this is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        // Without `//`, what looks like a scheme may be a user's name.
        return Err("a webhook is reached by `http://` or `https://`".to_owned());
    }
    // The parser takes `http:host` and `http:///host` for `http://host`; a typing error is likelier.
    let authority = text.trim_start().get(url.scheme().len()..).and_then(|rest| rest.strip_prefix("://"));
    match authority {
        Some(rest) if !rest.starts_with('/') && url.host_str().is_some_and(|host| !host.is_empty()) => Ok(()),
        _ => Err("this URL has no host".to_owned()),
    }
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
    let is_command = draft.kind == Some(COMMAND);
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
