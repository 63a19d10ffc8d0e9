//! What an agent finds in its workspace: files that say how to work there, skills, variables, changes of files.

use std::collections::BTreeMap;
use std::path::Path;

use gatehook_agent::agents::{Agent, Agents};
use gatehook_agent::session::Beginning;
use gatehook_agent::skills::Skills;
use gatehook_agent::watch::{Changes, Watching};
use gatehook_engine::context_files::{self, ContextFile};
use gatehook_engine::repository;
use gatehook_events::{Event, Input};
use serde_json::json;

use crate::failure::Failure;
use crate::places::home;
use crate::policy::Policy;
use crate::print::Printer;

/// Files that say how to work in a folder and below it.
const CONTEXT_FILES: &[&str] = &["AGENTS.md", "GATEHOOK.md", "OLLAMA.md", "CLAUDE.md"];

/// What is told first: to models, and to hooks.
pub(super) struct Told {
    pub(super) standing: String,
    pub(super) about: Input,
}

/// What hooks of every event are told of whoever runs the agent.
pub(super) fn about(env: &BTreeMap<String, String>) -> Input {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| env.get(*name));
    Input { user: user.map(|user| user.as_str().into()), ..Input::default() }
}

/// The same of an agent too, before there is a session.
pub(super) fn before(about: &Input, beginning: &Beginning, agent: &Agent, folder: &Path) -> Input {
    Input {
        session_id: Some(beginning.id.clone()),
        cwd: Some(folder.to_string_lossy().into()),
        agent_name: Some(agent.name.clone()),
        model_id: Some(agent.model.id().clone()),
        provider: Some(agent.model.provider().into()),
        ..about.clone()
    }
}

/// The same of a folder too.
pub(super) fn of_folder(about: &Input, folder: &Path) -> Input {
    let files = files(folder);
    let branch = repository::branch(folder).map(Into::into);
    with_files(Input { branch, ..about.clone() }, folder, &files)
}

/// What a workspace tells, and what hooks have said of it.
pub(super) fn told(workspace: &Path, about: Input, said: &[String]) -> Told {
    let files = files(workspace);
    let of_file = |ContextFile { path, text }: &ContextFile| format!("Instructions from {}:\n\n{text}", path.display());
    let texts = files.iter().map(of_file).chain(said.iter().map(|said| said.trim().to_owned()));
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    Told { standing: texts.join("\n\n"), about: with_files(about, workspace, &files) }
}

/// The files of a folder and of those above it, up to the repository's.
fn files(folder: &Path) -> Vec<ContextFile> {
    let top = repository::root(folder);
    context_files::read(folder, Some(top.as_deref().unwrap_or(folder)), CONTEXT_FILES)
}

fn with_files(mut about: Input, folder: &Path, files: &[ContextFile]) -> Input {
    let name = |file: &ContextFile| file.path.strip_prefix(folder).unwrap_or(&file.path).display().to_string();
    let names: Vec<String> = files.iter().map(name).collect();
    if !names.is_empty() {
        about.extra.insert("context_files".to_owned(), json!(names));
    }
    about
}

/// What the agent can follow.
pub(super) fn skills(
    policy: &Policy,
    env: &BTreeMap<String, String>,
    printer: &mut Printer,
) -> Result<Skills, Failure> {
    let mut notes = Vec::new();
    let skills = policy.skills(env, &mut notes)?;
    notes.iter().for_each(|note| printer.note(note));
    Ok(skills)
}

/// The environment of tools: this process's, and what setup hooks left.
pub(super) fn environment(
    policy: &Policy,
    env: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut env_of_tools = env.clone();
    if let Some(kept) = policy.variables(env)? {
        env_of_tools.extend(kept.variables);
    }
    Ok(env_of_tools)
}

/// Looks at the workspace, where a hook wants to know what becomes of it.
pub(super) fn watching(
    workspace: &Path,
    agents: &Agents,
    skills: &Skills,
    (changes, env): (&Changes, &BTreeMap<String, String>),
    printer: &mut Printer,
) -> Option<Watching> {
    let of_skills = skills.all().filter_map(|skill| skill.hooks.as_ref());
    let mut executors = agents.all().map(|agent| &agent.executor).chain(of_skills);
    if !executors.any(|executor| executor.has(Event::OnFileChange)) {
        return None;
    }
    // What is kept of the session itself is no change of the workspace.
    let own = home(env, "XDG_STATE_HOME", ".local/state").map(|folder| folder.join("gatehook"));
    Watching::begin(workspace, own.as_deref(), changes).map_err(|error| printer.note(&error.to_string())).ok()
}
