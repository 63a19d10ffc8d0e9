//! What the tables of scenarios say.

use std::collections::BTreeMap;
use std::path::Path;

use gatehook_engine::config::{Document, Format};
use gatehook_engine::events::{Event, Profile};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A table: what hooks of one contract are told by an agent, and what becomes of their answers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Table {
    /// Events that only a person at a terminal makes happen, and where the test of it is.
    pub(super) elsewhere: BTreeMap<String, String>,
    /// Facts of an event that are not told there, by its contract or for want of one.
    pub(super) untold: BTreeMap<String, Vec<String>>,
    /// Answers that have a name.
    pub(super) ways: BTreeMap<String, Act>,
    pub(super) rows: Vec<Row>,
}

/// What a hook does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Act {
    /// JSON on standard output.
    pub(super) says: Option<Value>,
    /// Text on standard output.
    pub(super) prints: Option<String>,
    /// Text on standard error.
    pub(super) errs: Option<String>,
    /// A shell line.
    pub(super) runs: Option<String>,
    /// Its exit code.
    pub(super) exit: i32,
    /// The first time alone; after that it has no objection.
    pub(super) once: bool,
    /// More of its definition.
    pub(super) hook: Map<String, Value>,
    /// More of its group's.
    pub(super) group: Map<String, Value>,
}

/// What makes something happen.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Scene {
    pub(super) prompt: String,
    /// What the model says, in turn.
    pub(super) say: Vec<Value>,
    /// Files of the home's folder.
    pub(super) files: BTreeMap<String, String>,
    /// More of the command line.
    pub(super) args: Vec<String>,
    /// The user's configuration besides hooks.
    pub(super) config: Map<String, Value>,
    /// Lines for the shell, before.
    pub(super) before: Vec<String>,
    /// Where it works, below the home's folder.
    pub(super) folder: String,
    /// A command in place of `run`.
    pub(super) command: Vec<String>,
    /// Prompts after it, each with its arguments, for the same session or another one.
    pub(super) again: Vec<Scene>,
}

/// One scenario, and what must become of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Row {
    /// Which event it is about, by its name in this contract.
    pub(super) event: String,
    /// Which clause of what the verdict does it shows.
    pub(super) clause: String,
    /// The event's hook does each of these, in a run of its own.
    pub(super) ways: Vec<String>,
    pub(super) scene: String,
    /// In place of the scene's, where they are given.
    pub(super) prompt: Option<String>,
    pub(super) say: Option<Vec<Value>>,
    /// Beside the scene's.
    pub(super) files: BTreeMap<String, String>,
    pub(super) args: Vec<String>,
    pub(super) config: Map<String, Value>,
    /// What hooks do.
    pub(super) does: BTreeMap<String, Act>,
    /// Whose hooks listen besides; `all` is all.
    pub(super) hears: Vec<String>,

    /// The exit code.
    pub(super) code: i32,
    /// How the last turn ended, and the model's last text.
    pub(super) reason: Option<String>,
    pub(super) text: Option<String>,
    /// Payloads by event: one like this came, or exactly these.
    pub(super) told: BTreeMap<String, Value>,
    /// How often an event came.
    pub(super) times: BTreeMap<String, usize>,
    /// All that was heard.
    pub(super) order: Option<Vec<String>>,
    /// What is, and what is not, in the last question to the model, and in any of them.
    pub(super) asked: Vec<String>,
    pub(super) unasked: Vec<String>,
    pub(super) once_asked: Vec<String>,
    /// What is, and what is not, in results of tools.
    pub(super) results: Vec<String>,
    pub(super) no_results: Vec<String>,
    /// What the person was told, and what stands nowhere in what is printed.
    pub(super) noticed: Vec<String>,
    pub(super) unprinted: Vec<String>,
    /// Files that are left: with this in them, or not at all.
    pub(super) left: BTreeMap<String, Option<String>>,
}

/// A file beside this one.
fn read<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/agent/matrix").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let document = Document::parse(name, &text, Format::Yaml).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    serde_json::from_value(document.root.to_json()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The files of a contract, as one table.
pub(super) fn table(files: &[&str]) -> Table {
    let mut all = Table::default();
    for file in files {
        let Table { elsewhere, untold, ways, rows } = read(file);
        all.elsewhere.extend(elsewhere);
        all.untold.extend(untold);
        all.ways.extend(ways);
        all.rows.extend(rows);
    }
    all
}

/// What makes something happen, by name.
pub(super) fn scenes() -> BTreeMap<String, Scene> {
    read("scenes.yaml")
}

impl Row {
    /// Its scene, with what it changes of it.
    pub(super) fn scene(&self, scenes: &BTreeMap<String, Scene>) -> Scene {
        let known = || scenes.get(&self.scene).cloned();
        let scene = if self.scene.is_empty() { Some(Scene::default()) } else { known() };
        let mut scene = scene.unwrap_or_else(|| panic!("{}: there is no scene {}", self.event, self.scene));
        scene.prompt = self.prompt.clone().unwrap_or(scene.prompt);
        scene.say = self.say.clone().unwrap_or(scene.say);
        scene.files.extend(self.files.clone());
        scene.args.extend(self.args.clone());
        scene.config.extend(self.config.clone());
        scene
    }

    /// Whether it matters what the model is asked.
    pub(super) fn wants_questions(&self) -> bool {
        [&self.asked, &self.unasked, &self.once_asked].iter().any(|words| !words.is_empty())
    }

    /// The events whose hooks are in force.
    pub(super) fn heard(&self, profile: Profile) -> Vec<String> {
        let named = std::iter::once(&self.event).chain(self.does.keys()).chain(self.told.keys());
        let mut heard: Vec<String> = named.chain(self.times.keys()).chain(&self.hears).cloned().collect();
        if self.hears.iter().any(|name| name == "all") {
            heard.extend(Event::all().filter_map(|event| event.name_in(profile)).map(str::to_owned));
        }
        heard.retain(|name| name != "all");
        heard.sort();
        heard.dedup();
        heard
    }
}
