//! Skills: where they lie, what is wrong with one, and whether its hooks are in force.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_agent::skills::{self, Skill, SkillFile};
use gatehook_engine::Executor;
use gatehook_engine::config::{ConfigError, Diagnostic, DiagnosticKind, ReadOptions};
use gatehook_engine::definition::Source;
use gatehook_engine::trust::Judged;

use crate::places;

/// The file of a skill.
const FILE: &str = "SKILL.md";
/// Skills of one folder.
const MAX_SKILLS: usize = 256;

/// A skill, and who answers for it.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its file.
    pub(crate) path: PathBuf,
    pub(crate) file: SkillFile,
}

impl Found {
    /// Whether a hook came with it.
    pub(crate) fn has(&self, judged: &Judged) -> bool {
        let origin = &judged.definition.origin;
        origin.skill.is_some() && origin.file.as_deref() == Some(&self.path)
    }

    /// The skill with its hooks that are in force, and why others are not.
    pub(crate) fn skill(&self, hooks: Option<Executor>, why: Option<String>) -> Skill {
        let SkillFile { name, description, text, is_listed, .. } = &self.file;
        Skill {
            name: name.clone(),
            description: description.clone(),
            path: self.path.as_path().into(),
            text: text.clone(),
            is_listed: *is_listed,
            hooks,
            note: why.map(|why| format!("{why}; `gatehook hooks trust` shows what they would run").into()),
        }
    }
}

/// All skills, in falling order of authority, and what is wrong with those that cannot be used, a sentence each.
pub(crate) fn find(env: &BTreeMap<String, String>, project: &Path, builtins: &[&str]) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut notes): (Vec<Found>, Vec<String>) = (Vec::new(), Vec::new());
    for (source, folder) in places::skill_folders(env, project) {
        for folder in folders(&folder, &mut notes) {
            match read(&folder, source, env, builtins) {
                Ok(skill) => match found.iter().find(|known| known.file.name == skill.file.name) {
                    None => found.push(skill),
                    Some(known) if known.path.canonicalize().ok() == skill.path.canonicalize().ok() => {}
                    Some(known) => notes.push(format!(
                        "{}: the skill {} of {} goes before this one",
                        skill.path.display(),
                        skill.file.name,
                        known.path.display()
                    )),
                },
                Err(error) => notes.push(format!("a skill cannot be used: {}", in_a_line(&error))),
            }
        }
    }
    (found, notes)
}

/// The folders of skills in a folder, by name.
fn folders(folder: &Path, notes: &mut Vec<String>) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> =
        entries.filter(|path| path.join(FILE).symlink_metadata().is_ok()).take(MAX_SKILLS + 1).collect();
    folders.sort();
    if folders.len() > MAX_SKILLS {
        notes.push(format!("{}: there are more than {MAX_SKILLS} skills; none of them can be used", folder.display()));
        folders.clear();
    }
    folders
}

fn read(
    folder: &Path,
    source: Source,
    env: &BTreeMap<String, String>,
    builtins: &[&str],
) -> Result<Found, ConfigError> {
    let path = folder.join(FILE);
    let shown = path.display().to_string();
    let text = text(&path)
        .map_err(|why| ConfigError::one(&shown, "", Diagnostic::new(DiagnosticKind::Unreadable, "", why)))?;
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let options = ReadOptions {
        source,
        working_dir: real.clone(),
        env,
        builtins: Some(builtins),
        file: Some(Arc::new(path.clone())),
        ..ReadOptions::default()
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut file = skills::read(&shown, &text, &name, &options)?;
    // A skill's scripts lie beside it.
    let real = real.to_str().map(str::to_owned);
    file.hooks.hooks_mut().for_each(|hook| hook.working_dir = hook.working_dir.take().or_else(|| real.clone()));
    Ok(Found { path, file })
}

fn text(path: &Path) -> Result<String, String> {
    if let Some(why) = places::not_a_file(path) {
        return Err(why);
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let bound = u64::try_from(skills::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    file.take(bound).read_to_end(&mut bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|error| format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()))
}

/// The problems of a file, each with its place, in one line.
fn in_a_line(error: &ConfigError) -> String {
    let place = |problem: &Diagnostic| match &problem.span {
        Some(span) => format!("{}:{}", error.source_name, error.position(span.start).0),
        None => error.source_name.to_string(),
    };
    let help = |problem: &Diagnostic| problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    let each = error.diagnostics.iter().map(|it| format!("{}: {}{}", place(it), it.message, help(it)));
    gatehook_engine::text::plain(&each.collect::<Vec<_>>().join("; ")).into_owned()
}
