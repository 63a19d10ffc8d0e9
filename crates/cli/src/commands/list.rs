//! `gatehook hooks list`: every hook, whether it is in force, and if not why.

use std::collections::BTreeMap;

use gatehook_engine::HookInfo;
use gatehook_engine::definition::{HookDefinition, Origin};
use gatehook_engine::trust::{Judged, Seal, Standing};
use gatehook_events::Event;
use serde_json::{Value, json};

use crate::args::FileArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{Policy, Reading};
use crate::print::Printer;
use crate::table::Table;

/// One hook.
struct Row<'a> {
    event: Event,
    matcher: &'a str,
    definition: &'a HookDefinition,
    /// What of a streamed answer waits for it, of text and of thinking, where its event shows it any.
    stream: Option<(&'static str, &'static str)>,
    /// Why it is not in force.
    why: Option<String>,
    judged: Option<&'a Judged>,
}

/// Runs `hooks list`.
pub(crate) fn run(args: &FileArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let policy = Reading::of(&args.files, &args.dialect, env)?.policy()?;
    let executor = policy.executor(env)?;
    let in_force = executor.hooks().map(Row::in_force);
    let others = policy.judgement.hooks.iter().filter(|judged| !judged.standing.is_in_force()).map(Row::waiting);
    let of_skill = |judged: &&Judged| judged.standing.is_in_force() && judged.definition.origin.skill.is_some();
    let of_skills = policy.judgement.hooks.iter().filter(of_skill).map(Row::waiting);
    let mut rows: Vec<Row<'_>> =
        in_force.chain(of_skills).chain(others).chain(policy.hooks_of_agents().map(Row::waiting)).collect();
    rows.sort_by_key(|row| row.event as usize);
    if args.json {
        let rows: Vec<Value> = rows.iter().map(|row| row.json(&policy)).collect();
        printer.json(&rows)?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        printer.note("no hook is in force: no configuration names one");
        policy.notes().iter().for_each(|note| printer.note(note));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["EVENT", "MATCHER", "HOOK", "TYPE", "STREAM", "SOURCE", "PROFILE", "STATE", "PLACE"]);
    rows.iter().for_each(|row| table.row(row.cells()));
    printer.text(&table)?;
    waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    Ok(Exit::Done)
}

/// What somebody should know whose hooks are not all in force.
pub(crate) fn waiting(policy: &Policy) -> Vec<String> {
    let is_off = |judged: &&Judged| matches!(judged.standing, Standing::SwitchedOff(_));
    let hooks = policy.judgement.hooks.iter().chain(policy.hooks_of_agents());
    let waiting = hooks.filter(|judged| !judged.standing.is_in_force() && !is_off(judged));
    let waiting = waiting.count();
    let mut notes = policy.notes().to_vec();
    if waiting > 0 {
        let (hooks, they) = if waiting == 1 { ("1 hook is", "it") } else { (&*format!("{waiting} hooks are"), "they") };
        notes.push(format!("{hooks} not in force; `gatehook hooks trust` shows what {they} would run"));
    }
    if let Some(Err(error)) = policy.ground.as_ref().map(|ground| &ground.approvals).filter(|_| waiting > 0) {
        notes.push(format!("{error}; {}", error.help()));
    }
    notes
}

impl<'a> Row<'a> {
    fn in_force(info: HookInfo<'a>) -> Self {
        let shown = info.event == Event::PostInference;
        Self {
            event: info.event,
            matcher: info.matcher,
            definition: info.definition,
            stream: shown.then(|| (info.policy.text.name(), info.policy.thinking.name())),
            why: info.definition.seal.as_ref().and_then(Seal::absence).map(str::to_owned),
            judged: None,
        }
    }

    fn waiting(judged: &'a Judged) -> Self {
        Self {
            event: judged.event,
            matcher: &judged.matcher,
            definition: &judged.definition,
            stream: None,
            why: judged.standing.why(),
            judged: Some(judged),
        }
    }

    fn state(&self) -> &'static str {
        match (self.judged, &self.why) {
            (Some(judged), _) => judged.standing.name(),
            (None, Some(_)) => "required",
            (None, None) => "in_force",
        }
    }

    fn cells(&self) -> [String; 9] {
        let definition = self.definition;
        [
            self.event.public_name().to_owned(),
            if self.matcher.is_empty() { "*".to_owned() } else { self.matcher.to_owned() },
            definition.display_name().to_owned(),
            definition.handler.kind().to_owned(),
            match self.stream {
                Some((text, thinking)) if text == thinking => text.to_owned(),
                Some((text, thinking)) => format!("{text}, thinking {thinking}"),
                None => String::new(),
            },
            definition.origin.source.name().to_owned(),
            definition.profile.name().to_owned(),
            match (&self.why, &definition.origin.skill) {
                (Some(why), _) => why.clone(),
                (None, Some(skill)) => format!("in force while {skill} is followed"),
                (None, None) => "in force".to_owned(),
            },
            match &definition.origin.agent {
                Some(agent) => format!("{}, of the agent {agent}", place(&definition.origin)),
                None => place(&definition.origin),
            },
        ]
    }

    fn json(&self, policy: &Policy) -> Value {
        let definition = self.definition;
        let origin = &definition.origin;
        let hash = |judged: &Judged| judged.content.as_ref().map(|content| content.hash.clone());
        let same = |judged: &&Judged| judged.definition.origin == *origin && judged.event == self.event;
        let judged = self.judged.or_else(|| policy.judgement.hooks.iter().find(same));
        let mut json = json!({
            "event": self.event.public_name(), "matcher": self.matcher, "name": definition.display_name(),
            "type": definition.handler.kind(),
            "stream": self.stream.map(|(text, thinking)| json!({"text": text, "thinking": thinking})),
            "source": origin.source.name(), "profile": definition.profile.name(), "file": origin.file.as_deref(),
            "line": origin.file.is_some().then_some(origin.line), "in_force": self.why.is_none(),
            "state": self.state(), "why": self.why, "hash": judged.and_then(hash),
        });
        if let (Some(agent), Some(json)) = (&origin.agent, json.as_object_mut()) {
            json.insert("agent".to_owned(), json!(agent));
        }
        if let (Some(skill), Some(json)) = (&origin.skill, json.as_object_mut()) {
            json.insert("skill".to_owned(), json!(skill));
        }
        json
    }
}

pub(crate) fn place(origin: &Origin) -> String {
    match &origin.file {
        Some(file) => format!("{}:{}", file.display(), origin.line),
        None => "environment".to_owned(),
    }
}
