//! Remembering what a command dispatches: where, for how long, and what is said where it cannot be.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gatehook_engine::Executor;
use gatehook_engine::config::TraceSettings;
use gatehook_events::Recorder;
use gatehook_store::{Drained, Keep, TraceWriter};

use crate::places::home;
use crate::print::Printer;

/// How long a command that raised an event waits for its trace to be written.
const GRACE: Duration = Duration::from_secs(2);

/// Where nobody says where to remember.
const NO_PLACE: &str = "neither XDG_STATE_HOME nor HOME is set, and no `traces.path`";

/// The file that remembers, where there is any.
pub(crate) fn path(settings: &TraceSettings, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let usual = || home(env, "XDG_STATE_HOME", ".local/state").map(|folder| folder.join("gatehook/gatehook.db"));
    settings.path.clone().or_else(usual)
}

/// The writers of one process, each with the settings it was made for. The last one is in use.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    writers: Vec<(TraceSettings, Arc<TraceWriter>)>,
    /// Nothing is remembered although it should be.
    unplaced: bool,
}

impl Recording {
    /// For a command that raises events on behalf of an agent: it remembers unless it is told not to.
    pub(crate) fn of_agent(settings: &TraceSettings, env: &BTreeMap<String, String>) -> Self {
        let mut recording = Self::default();
        if settings.enabled != Some(false) {
            recording.write(settings, "agent", env);
        }
        recording
    }

    /// The executor, remembered as a gateway's settings say: only where they ask for it. To be called again when they
    /// have changed.
    pub(crate) fn of_wire(
        &mut self,
        executor: Executor,
        settings: &TraceSettings,
        env: &BTreeMap<String, String>,
    ) -> Executor {
        self.unplaced = false;
        if settings.enabled != Some(true) {
            return executor;
        }
        if self.writers.last().is_none_or(|(known, _)| known != settings) {
            self.write(settings, "wire", env);
        }
        self.recorded(executor)
    }

    fn write(&mut self, settings: &TraceSettings, plane: &'static str, env: &BTreeMap<String, String>) {
        let usual = Keep::default();
        let keep = Keep { age: settings.keep.unwrap_or(usual.age), rows: settings.max_rows.unwrap_or(usual.rows) };
        match path(settings, env) {
            Some(path) => self.writers.push((settings.clone(), Arc::new(TraceWriter::new(path, plane, keep)))),
            None => self.unplaced = true,
        }
    }

    /// What remembers, where there is any.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        let (_, writer) = self.writers.last().filter(|_| !self.unplaced)?;
        Some(Arc::clone(writer) as Arc<dyn Recorder>)
    }

    /// The executor, remembered.
    pub(crate) fn recorded(&self, executor: Executor) -> Executor {
        match self.recorder() {
            Some(recorder) => executor.recorded(recorder),
            None => executor,
        }
    }

    /// Why nothing is remembered although it should be.
    pub(crate) fn problem(&self) -> Option<String> {
        self.unplaced.then(|| format!("dispatches are not recorded: {NO_PLACE}"))
    }

    /// Writes what waits, within `grace`, and says what was lost.
    pub(crate) fn drain(&self, grace: Duration) -> Option<String> {
        let lost = |drained: Drained| {
            let why = drained.fault.map(|error| format!(": {error} ({})", error.remedy())).unwrap_or_default();
            let what = if drained.lost == 1 { "1 dispatch is" } else { &*format!("{} dispatches are", drained.lost) };
            (drained.lost > 0).then(|| format!("{what} not recorded{why}"))
        };
        let said: Vec<String> = self.writers.iter().filter_map(|(_, writer)| lost(writer.drain(grace))).collect();
        if said.is_empty() { self.problem() } else { Some(said.join("\n")) }
    }

    /// The same for a command, whose answer does not depend on it.
    pub(crate) fn finish(&self, printer: &mut Printer) {
        self.drain(GRACE).into_iter().for_each(|lost| printer.note(&lost));
    }
}
