//! `gatehook import`: another system's hook file as native configuration.
//!
//! Hooks keep their contract: each says its `dialect`, so that a script is told and answers as before. What changes is
//! whose file it is, and that all of them stand in one.

mod native;
mod whose;
mod yaml;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_engine::config::{self, Document, Format, ReadOptions};
use gatehook_engine::trust::Project;
use gatehook_events::Profile;

use self::native::Native;
use self::whose::From;
use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::places::home;
use crate::policy::{self, PolicyError};
use crate::print::Printer;

type Env = BTreeMap<String, String>;

/// Prints the file as native configuration, or writes it where it is read.
pub(crate) fn run(args: &ImportArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let env = policy::environment();
    let project = Project::around(&std::env::current_dir()?, &env).map_err(PolicyError::WorkingDir)?;
    let from = args.from.as_deref().map(From::named).transpose()?;
    let (native, name) = match (&args.file, from) {
        (Some(file), from) => of_file(file, from, &project, &env)?,
        (None, Some(From::Environment)) => (Native::of_environment(&env)?, "environment".to_owned()),
        (None, _) => return Err(Failure::usage("there is no file to import", None)),
    };
    let text = native.text();
    check(&text, &native, &project, &env)?;
    native.notes.iter().for_each(|note| printer.note(note));
    if !args.write {
        printer.text(&text)?;
        return Ok(Exit::Done);
    }
    let path = place(args.file.as_deref(), &name, &project, &env)?;
    write(&path, &text)?;
    printer.text(&format!("{}\n", path.display()))?;
    if path.starts_with(project.root()) {
        printer.note("its hooks wait for their owner's approval: `gatehook hooks trust`");
    }
    Ok(Exit::Done)
}

/// What a file says, and a name for what is made of it.
fn of_file(file: &Path, from: Option<From>, project: &Project, env: &Env) -> Result<(Native, String), Failure> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let shown = file.display().to_string();
    if from.is_none_or(|from| from == From::Environment)
        && let Some(variables) = whose::variables(file, from.is_some())?
    {
        return Ok((Native::of_environment(&variables)?.made_from(&shown), format!("ollama-{stem}")));
    }
    let document = Document::open(file)?;
    let profile = match from {
        Some(From::Profile(profile)) => profile,
        _ => whose::profile(file, &document)?,
    };
    let folder = std::path::absolute(file)?.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    let is_manifest = file.file_name().is_some_and(|name| name == "manifest.json");
    let in_project = folder.canonicalize().is_ok_and(|folder| folder.starts_with(project.root()));
    // Programs of an extension stand in its own folder, all others are named from the project's.
    let working_dir = if in_project && !is_manifest { project.root().to_owned() } else { folder };
    let options =
        ReadOptions { profile, working_dir, env, file: Some(Arc::new(file.to_owned())), ..ReadOptions::default() };
    let read = config::load(file, &options)?;
    let native = Native::of_file(&document, &read, profile, project.root());
    Ok((native.made_from(&shown), format!("{}-{stem}", profile.name().replace('@', "-"))))
}

/// What is printed is read once more: what our own reader does not take is a defect.
fn check(text: &str, native: &Native, project: &Project, env: &Env) -> Result<(), Failure> {
    let mut env = env.clone();
    for name in &native.variables {
        env.entry(name.clone()).or_insert_with(|| "x".to_owned());
    }
    let options = ReadOptions { working_dir: project.root().to_owned(), env: &env, ..ReadOptions::default() };
    match config::parse("what was imported", text, Format::Yaml, &options) {
        Ok(file) if file.profile == Profile::Native => Ok(()),
        Ok(_) => Err(Failure::new(Exit::Defect, "what was imported is of another contract", None)),
        Err(error) => Err(Failure::new(Exit::Defect, error.to_string(), None)),
    }
}

/// Where what is made of `file` is read.
fn place(file: Option<&Path>, name: &str, project: &Project, env: &Env) -> Result<PathBuf, Failure> {
    let real = file.and_then(|file| file.canonicalize().ok());
    let user = || Some(home(env, "XDG_CONFIG_HOME", ".config")?.join("gatehook/hooks.d"));
    let folder = match real {
        Some(real) if real.starts_with(project.root()) => Some(project.root().join(".gatehook")),
        _ => user(),
    };
    let folder = folder.ok_or_else(|| Failure::new(Exit::System, "neither XDG_CONFIG_HOME nor HOME is set", None))?;
    Ok(folder.join(format!("{name}.yaml")))
}

/// A new file; what is there already stays.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let open = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let help = "move it away, or print the configuration without `--write`";
        let help = (error.kind() == std::io::ErrorKind::AlreadyExists).then(|| help.to_owned());
        Failure::new(Exit::No, format!("{} cannot be written: {error}", path.display()), help)
    })
}

#[cfg(test)]
mod tests;
