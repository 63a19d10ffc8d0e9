//! What there is to choose from, and to look at, when a session begins.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use gatehook_agent::session::Setup;
use gatehook_engine::HookInfo;
use gatehook_store::{Filter, Listed};

use super::clean;
use super::transcript::seconds;
use super::wire::{Choice, Facts};
use crate::agent::Ready;
use crate::commands::list::place;
use crate::sessions;

/// Reads them.
pub(crate) fn facts(ready: &Ready, env: &BTreeMap<String, String>, workspace: &Path, rules: Option<&Path>) -> Facts {
    let setup = ready.setup();
    Facts {
        hooks: setup.agents.root().executor.hooks().map(|hook| line(&hook)).collect(),
        agents: agents(setup),
        models: ready.models().map(|name| Choice { name: name.to_owned(), about: String::new() }).collect(),
        prompts: prompts(setup),
        sessions: kept(env, workspace),
        mode: String::new(),
        rules_file: rules.map(|path| path.display().to_string()),
    }
}

fn line(hook: &HookInfo<'_>) -> String {
    let definition = hook.definition;
    let matcher = if hook.matcher.is_empty() { "*" } else { hook.matcher };
    let (event, name, kind) = (hook.event.public_name(), definition.display_name(), definition.handler.kind());
    format!("{event}  {matcher}  {name}  {kind}  {}", place(&definition.origin))
}

fn agents(setup: &Setup) -> Vec<Choice> {
    let choice = |agent: &std::sync::Arc<gatehook_agent::agents::Agent>| Choice {
        name: agent.name.to_string(),
        about: agent.description.to_string(),
    };
    setup.agents.all().map(choice).collect()
}

/// The skills there are, and the prompts of the agent that begins.
fn prompts(setup: &Setup) -> Vec<Choice> {
    let choice = |name: &str, about: &str| Choice { name: name.to_owned(), about: clean::line(about).to_string() };
    let commands = &setup.agents.root().commands;
    let commands = commands.iter().map(|(name, it)| choice(name, it.description.as_deref().unwrap_or(&it.instruction)));
    commands.chain(setup.skills.all().map(|skill| choice(&skill.name, &skill.description))).collect()
}

/// The sessions of this folder. What cannot be read is not offered.
fn kept(env: &BTreeMap<String, String>, workspace: &Path) -> Vec<Choice> {
    let filter = Filter { workspace: Some(workspace.to_string_lossy().into()), with_turns: true, ..Filter::default() };
    let listed = sessions::archive(env).ok().flatten().and_then(|archive| archive.list(&filter).ok());
    listed.unwrap_or_default().iter().map(choice).collect()
}

fn choice(listed: &Listed) -> Choice {
    let age = SystemTime::now().duration_since(listed.touched).unwrap_or_default().as_secs();
    let age = match age {
        0..3600 => seconds(age as f64),
        3600..86_400 => format!("{} h", age / 3600),
        _ => format!("{} days", age / 86_400),
    };
    let prompt = listed.prompt.as_deref().unwrap_or_default();
    let id = listed.head.id.get(..8).unwrap_or(&listed.head.id);
    Choice { name: id.to_owned(), about: format!("{age} ago, {} turns: {}", listed.turns, clean::line(prompt)) }
}
