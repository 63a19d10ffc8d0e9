//! A hook as its owner looks at it before an approval.

use gatehook_agent::team::is_part;
use gatehook_engine::definition::{EnvPolicy, HandlerDefinition, Source};
use gatehook_engine::text;
use gatehook_engine::trust::content::{Content, NamedFile};
use gatehook_engine::trust::store::Approval;
use gatehook_engine::trust::{Ground, Judged};
use gatehook_events::Profile;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// Lines of a text that are shown.
const MAX_LINES: usize = 80;
/// Lines around a difference.
const AROUND: usize = 2;

/// All of it, for people. What comes from the project reaches the screen without controls.
pub(super) fn hook(judged: &Judged, ground: &Ground, number: usize, of: usize) -> String {
    let Some(content) = &judged.content else { return String::new() };
    let mut out = format!("{}\n", head(judged, &format!("{number} of {of}: ")));
    let (level, reasons) = risk(judged, content);
    line(&mut out, 1, &format!("risk: {level}: {}", reasons.join("; ")));
    let last = last(judged, ground);
    if let Some(last) = last {
        line(&mut out, 1, &format!("approved before by {} at {}; since then:", last.approved_by, last.approved_at));
        difference(&mut out, last, content);
    } else {
        line(&mut out, 1, "it runs:");
        block(&mut out, "", &pretty(&content.definition));
        for file in &content.files {
            line(&mut out, 1, &title(file));
            block(&mut out, "", file.text.as_deref().unwrap_or("(not shown)"));
        }
    }
    if !content.files.is_empty() {
        let names: Vec<&str> = content.files.iter().map(|file| file.path.as_str()).collect();
        line(&mut out, 1, &format!("files that are covered: {}", names.join(", ")));
    }
    for (what, words) in
        [("not covered, of the system", &content.programs), ("known only when it runs", &content.unknown)]
    {
        if !words.is_empty() {
            line(&mut out, 1, &format!("{what}: {}", words.join(", ")));
        }
    }
    line(&mut out, 1, &content.hash);
    out
}

/// A hook that cannot be approved.
pub(super) fn refused(judged: &Judged) -> String {
    let mut out = format!("{}\n", head(judged, "cannot be approved: "));
    for why in judged.content.iter().flat_map(|content| &content.refusals) {
        line(&mut out, 1, why);
    }
    out
}

/// The same for programs.
pub(super) fn json(judged: &Judged, ground: &Ground) -> Value {
    let Some(content) = &judged.content else { return Value::Null };
    let origin = &judged.definition.origin;
    let files = content
        .files
        .iter()
        .map(|file| json!({"path": file.path, "target": file.target, "sha256": file.sha256, "size": file.size}));
    let mut changed = String::new();
    let last = last(judged, ground);
    if let Some(last) = last {
        difference(&mut changed, last, content);
    }
    let (level, reasons) = risk(judged, content);
    json!({
        "id": judged.id, "event": judged.event.public_name(), "matcher": judged.matcher,
        "name": judged.definition.display_name(), "type": judged.definition.handler.kind(),
        "source": origin.source.name(), "file": origin.file.as_deref(), "line": origin.line,
        "in_force": judged.standing.is_in_force(), "state": judged.standing.name(), "why": judged.standing.why(),
        "hash": content.hash, "definition": content.definition, "files": files.collect::<Vec<_>>(),
        "programs": content.programs, "unknown": content.unknown, "refusals": content.refusals,
        "risk": level, "reasons": reasons, "difference": last.map(|_| changed),
    })
}

fn last<'g>(judged: &Judged, ground: &'g Ground) -> Option<&'g Approval> {
    ground.approvals.as_ref().ok()?.last(judged.project.as_ref()?.root(), &judged.id)
}

fn head(judged: &Judged, before: &str) -> String {
    let origin = &judged.definition.origin;
    let file = origin.file.as_ref().map(|file| format!("{}:{}", file.display(), origin.line)).unwrap_or_default();
    let name = judged.definition.display_name();
    let event = if is_part(&judged.definition) { String::new() } else { format!(" on {}", judged.event.public_name()) };
    plain(&format!("{before}{name}{event}, from the {} ({file})", origin.source.name()))
}

fn title(file: &NamedFile) -> String {
    let target = file.target.as_ref().map(|target| format!(" -> {target}")).unwrap_or_default();
    format!("{}{target}, {} bytes:", file.path, file.size)
}

/// How much an approval gives away, and why.
fn risk(judged: &Judged, content: &Content) -> (&'static str, Vec<String>) {
    let hook = &judged.definition;
    let mut reasons = Vec::new();
    let (is_harmless, what) = match &hook.handler {
        HandlerDefinition::Builtin { .. } => (true, "runs nothing of the project".to_owned()),
        HandlerDefinition::Webhook(webhook) => {
            let rest = webhook.url.split_once("://").map_or(webhook.url.as_str(), |(_, rest)| rest);
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            (false, format!("sends what it is shown to {host}"))
        }
        HandlerDefinition::Other { kind, .. } if kind == "agent" => {
            (true, "says what an agent is told, and what it may call".to_owned())
        }
        HandlerDefinition::Other { kind, .. } if kind == "agent_settings" => {
            (false, "lets tools run that you are asked about otherwise".to_owned())
        }
        HandlerDefinition::Other { kind, .. } if kind == "mcp_server" => {
            (false, "runs a program with your rights, or is told what agents send it".to_owned())
        }
        _ => (false, "runs a program with your rights".to_owned()),
    };
    reasons.push(what);
    if is_part(hook) {
        return (if is_harmless { "low" } else { "medium" }, reasons);
    }
    let rewrites = judged.event.capabilities(hook.profile).and_then(|capabilities| capabilities.rewrites);
    if rewrites.is_some() || judged.event.capabilities(Profile::Native).is_some_and(|it| it.rewrites.is_some()) {
        reasons.push("may rewrite what it is shown".to_owned());
    }
    let strangers = matches!(hook.origin.source, Source::Extension | Source::Downloaded);
    let environment = !is_harmless && hook.env_policy == EnvPolicy::Inherit;
    for (holds, reason) in [
        (strangers, "comes from elsewhere"),
        (environment, "sees all of your environment, secrets in it too"),
        (!content.unknown.is_empty(), "may run files that are known only when it runs"),
    ] {
        if holds {
            reasons.push(reason.to_owned());
        }
    }
    let level = match (is_harmless, strangers || environment) {
        (_, true) => "high",
        (true, false) => "low",
        (false, false) => "medium",
    };
    (level, reasons)
}

/// What is another since an approval, line by line.
fn difference(out: &mut String, last: &Approval, content: &Content) {
    if last.definition != content.definition {
        diff(out, "the definition", &pretty(&last.definition), &pretty(&content.definition));
    }
    for file in &content.files {
        match last.files.iter().find(|before| before.path == file.path) {
            None => {
                line(out, 1, &format!("new: {}", title(file)));
                block(out, "+", file.text.as_deref().unwrap_or("(not shown)"));
            }
            Some(before) if before.sha256 == file.sha256 && before.target == file.target => {}
            Some(before) => {
                if before.target != file.target {
                    let target = |target: &Option<String>| target.clone().unwrap_or_else(|| "itself".to_owned());
                    let (was, is) = (target(&before.target), target(&file.target));
                    line(out, 1, &format!("{} leads to {is} instead of {was}", file.path));
                }
                match (&before.text, &file.text) {
                    (Some(was), Some(is)) => diff(out, &file.path, was, is),
                    _ => line(out, 1, &format!("{}: other bytes", file.path)),
                }
            }
        }
    }
    for before in last.files.iter().filter(|before| content.files.iter().all(|file| file.path != before.path)) {
        line(out, 1, &format!("gone: {}", before.path));
    }
}

fn diff(out: &mut String, name: &str, before: &str, after: &str) {
    line(out, 1, &format!("{name}:"));
    let diff = TextDiff::from_lines(before, after);
    let mut shown = 0;
    for (number, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if number > 0 {
            line(out, 2, "…");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            shown += 1;
            if shown > MAX_LINES {
                return line(out, 2, "… and more");
            }
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            line(out, 2, &format!("{sign}{}", change.value().trim_end_matches(['\n', '\r'])));
        }
    }
}

fn block(out: &mut String, sign: &str, text: &str) {
    for text in text.lines().take(MAX_LINES) {
        line(out, 2, &format!("{sign}{text}"));
    }
    let more = text.lines().count().saturating_sub(MAX_LINES);
    if more > 0 {
        line(out, 2, &format!("… and {more} more lines"));
    }
}

fn line(out: &mut String, depth: usize, text: &str) {
    out.push_str(&"  ".repeat(depth));
    out.push_str(&plain(text).replace('\n', " "));
    out.push('\n');
}

fn plain(text: &str) -> String {
    text::plain(text).into_owned()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
