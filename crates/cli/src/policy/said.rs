//! What all files say together.

use std::num::NonZeroUsize;
use std::sync::Arc;

use gatehook_agent::team::TeamFile;
use gatehook_engine::config::TraceSettings;
use gatehook_engine::definition::Source;
use gatehook_engine::trust::Required;
use gatehook_engine::{HandlerEnv, HookGroup, HooksConfig, Registry};
use gatehook_gateway::ModelConfig;
use gatehook_gateway::settings::Settings;

use super::reading::Read;
use super::registry;
use crate::models;
use crate::places::Place;

/// What files and environment say, hooks not judged yet.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) hooks: HooksConfig,
    pub(super) required: Vec<Required>,
    pub(super) max_concurrent_hooks: Option<NonZeroUsize>,
    pub(super) settings: Settings,
    /// What somebody should know who believes that all of a file is in force.
    pub(super) notes: Vec<String>,
    pub(super) traces: TraceSettings,
    /// What the administrator's files say, and the names of what nobody else changes of it.
    pub(super) managed: Settings,
    pub(super) locked: Vec<String>,
    /// What each file says of agents, from the weakest to the strongest.
    pub(super) teams: Vec<TeamFile>,
}

impl Said {
    /// What runs hooks, and the models that judge.
    pub(super) fn registry(&self, env: &HandlerEnv) -> Registry {
        let registry = registry();
        registry.register_model_client(Arc::new(models::known(self.models().to_vec(), &env.env)));
        registry
    }

    /// What files say of models.
    pub(super) fn models(&self) -> &[ModelConfig] {
        if self.keeps_models() { self.managed.models() } else { self.settings.models() }
    }

    /// Whether nobody but the administrator says where models are.
    pub(super) fn keeps_models(&self) -> bool {
        self.locked.iter().any(|name| name == "models")
    }

    /// Takes what a file says beside its hooks. What needs an approval may tighten, and says nothing to the gateway.
    pub(super) fn take(&mut self, place: &Place, Read { file, settings, team }: Read) {
        self.teams.push(team);
        self.notes.extend(file.notes.iter().map(|note| format!("{}: {note}", place.path.display())));
        self.required.extend(file.required);
        self.locked.extend(file.locked);
        let is_locked = |name: &str| self.locked.iter().any(|locked| locked == name);
        self.max_concurrent_hooks = match (file.max_concurrent_hooks, self.max_concurrent_hooks) {
            (Some(_), before) if place.source != Source::Managed && is_locked("max_concurrent_hooks") => before,
            (Some(said), Some(before)) if place.source.needs_approval() => Some(said.min(before)),
            (said, before) => said.or(before),
        };
        if place.source == Source::Managed {
            self.managed = settings.clone().or(std::mem::take(&mut self.managed));
        }
        if !place.source.needs_approval() && (place.source == Source::Managed || !is_locked("traces")) {
            self.traces = file.traces.or(std::mem::take(&mut self.traces));
        }
        if !place.source.needs_approval() {
            self.settings = settings.or(std::mem::take(&mut self.settings));
        }
    }

    /// Adds hooks of the user behind all with as much authority.
    pub(super) fn user_hooks(&mut self, hooks: HooksConfig) {
        let is_foreign = |group: &HookGroup| group.hooks.iter().any(|hook| hook.origin.source.needs_approval());
        let at = self.hooks.groups.iter().position(is_foreign).unwrap_or(self.hooks.groups.len());
        self.hooks.groups.splice(at..at, hooks.groups);
    }
}

/// Whose plain settings stand, the weakest first: managed ones that are not locked, the user's, a project's, those of a
/// file that was named.
pub(super) fn strength(place: &Place) -> u8 {
    match place.source {
        Source::Managed => 0,
        Source::User if place.is_named => 3,
        Source::User | Source::Builtin => 1,
        Source::Workspace | Source::Extension | Source::Downloaded => 2,
    }
}
