//! What a project's owner approves of its agents: each server, each agent, and its settings, by what is written and by
//! the files that are named. They are told apart from hooks by their kind, and judged as hooks are.

use std::sync::Arc;

use gatehook_engine::definition::{Origin, Source};
use gatehook_engine::events::Event;
use gatehook_engine::events::Profile;
use gatehook_engine::trust::Seal;
use gatehook_engine::{HandlerDefinition, HookDefinition, HookGroup, HooksConfig};
use serde_json::{Map, Value, json};

use super::{Defaults, TeamFile};

/// The kinds of parts, as an approval names them.
const SERVER: &str = "mcp_server";
const AGENT: &str = "agent";
const SETTINGS: &str = "agent_settings";

/// Whether a part may be used: under which seal, or why not.
pub type Standing = Result<Option<Seal>, String>;

/// Whether a definition is a part of an agents' file, and no hook.
pub fn is_part(hook: &HookDefinition) -> bool {
    [SERVER, AGENT, SETTINGS].contains(&hook.handler.kind())
}

impl TeamFile {
    /// Its parts, for [`judge`](gatehook_engine::trust::judge). They stand under `session_start`, when they are used first.
    pub fn parts(&self) -> HooksConfig {
        let servers = self.servers.iter().map(|it| part(SERVER, &it.name, it.written.clone(), &it.origin));
        let agents = self.agents.iter().map(|it| part(AGENT, &it.name, it.written.clone(), &it.origin));
        let settings = self.written.iter().map(|written| part(SETTINGS, SETTINGS, written.clone(), &self.origin));
        let hooks: Vec<HookDefinition> = servers.chain(agents).chain(settings).collect();
        let group = HookGroup { event: Event::SessionStart, matcher: String::new(), hooks };
        HooksConfig { groups: if group.hooks.is_empty() { Vec::new() } else { vec![group] } }
    }

    /// Takes out what may not be used, and says so: of rules those that deny or ask stay in any case.
    pub fn settle(&mut self, standing: impl Fn(&HookDefinition) -> Standing) -> Vec<String> {
        let mut notes = Vec::new();
        let mut may = |kind: &str, name: &str, written: &Arc<Value>, origin: &Origin| {
            if !origin.source.needs_approval() {
                return Some(None);
            }
            let part = part(kind, name, written.clone(), origin);
            let why = match standing(&part) {
                Ok(seal) => return Some(seal),
                Err(why) => why,
            };
            let what = part.name.as_deref().unwrap_or_default();
            let file = origin.file.as_deref().map(|file| format!("{}: ", file.display())).unwrap_or_default();
            notes.push(format!("{file}{what} is not used: {why}; `gatehook hooks trust` approves it"));
            None
        };
        self.servers.retain_mut(|server| {
            let seal = may(SERVER, &server.name, &server.written, &server.origin);
            server.seal = seal.clone().flatten();
            seal.is_some()
        });
        self.agents.retain(|agent| may(AGENT, &agent.name, &agent.written, &agent.origin).is_some());
        if let Some(written) = &self.written
            && may(SETTINGS, SETTINGS, written, &self.origin).is_none()
        {
            self.defaults = Defaults::default();
            self.permissions.allow.clear();
        }
        notes
    }

    /// Its agents' hooks, which are judged with all others; they leave the agents until they are.
    pub fn take_hooks(&mut self) -> HooksConfig {
        let groups = self.agents.iter_mut().flat_map(|agent| std::mem::take(&mut agent.hooks.groups));
        HooksConfig { groups: groups.collect() }
    }
}

fn part(kind: &str, name: &str, written: Arc<Value>, origin: &Origin) -> HookDefinition {
    let handler = HandlerDefinition::Other { kind: kind.to_owned(), fields: Map::new() };
    let label = match kind {
        SERVER => format!("the MCP server `{name}`"),
        AGENT => format!("the agent `{name}`"),
        _ => "`agent` and what `permissions` allow".to_owned(),
    };
    let written = json!({ "type": kind, "name": name, kind: &*written });
    HookDefinition {
        name: Some(label),
        written: Some(Arc::new(written)),
        origin: Origin { agent: None, ..origin.clone() },
        ..HookDefinition::new(Profile::Native, handler)
    }
}

/// Who answers for a source's rules.
pub(super) fn tier(source: Source) -> usize {
    match source {
        Source::Managed => 0,
        Source::User | Source::Builtin => 1,
        Source::Workspace | Source::Extension | Source::Downloaded => 2,
    }
}
