//! Puts hooks into a repository, and takes them out. What was there is kept in the folder `gatehook.kept` beside them and
//! runs first. At no moment is there no hook where one was.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use super::repository::{Owner, Repository};
use crate::args::GitStage;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;

/// What tells our hooks from others.
const MARK: &str = "# Made by `gatehook git install`.";
/// What an installed hook is made from.
const TEMPLATE: &str = include_str!("hook.sh");
/// The folder of what was there.
const KEPT: &str = "gatehook.kept";
/// Shells whose scripts can be run by another path than they are told.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ksh"];

/// Puts a hook for each stage into the repository around the working directory.
pub(super) fn install(force: bool, printer: &mut Printer) -> Result<Exit, Failure> {
    let repository = Repository::here()?;
    let hooks = repository.hooks()?;
    let places: Vec<Place> = GitStage::value_variants().iter().map(|stage| Place::new(&hooks, *stage)).collect();
    if !force {
        places.iter().try_for_each(|place| place.refuse(&repository, &hooks))?;
    }
    fs::create_dir_all(&hooks).map_err(|error| unwritable(&hooks, &error))?;
    for place in &places {
        let kept = place.install().map_err(|error| unwritable(&place.hook, &error))?;
        let chained = if kept { "; the hook that was there runs first" } else { "" };
        printer.text(&format!("{}{chained}\n", place.hook.display()))?;
    }
    if hooks.ends_with(".husky/_") {
        printer.note("husky writes this folder anew each time it is installed; run `gatehook git install` after it");
    }
    Ok(Exit::Done)
}

/// Takes the hooks out, and puts back what was there.
pub(super) fn uninstall(printer: &mut Printer) -> Result<Exit, Failure> {
    let repository = Repository::here()?;
    let mut folders = vec![repository.hooks()?, repository.own_hooks()];
    folders.dedup();
    let mut count = 0;
    for place in folders.iter().flat_map(|hooks| GitStage::value_variants().iter().map(|it| Place::new(hooks, *it))) {
        if !place.is_ours() {
            continue;
        }
        let back = place.uninstall().map_err(|error| unwritable(&place.hook, &error))?;
        let what = if back { "what was there is back" } else { "taken out" };
        printer.text(&format!("{}: {what}\n", place.hook.display()))?;
        count += 1;
    }
    if count == 0 {
        printer.note("no hook of `gatehook git install` is in this repository");
    }
    Ok(Exit::Done)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::System, format!("{} cannot be written: {error}", path.display()), None)
}

/// A hook's place, and that of what was there before.
struct Place {
    name: String,
    hook: PathBuf,
    kept: PathBuf,
}

impl Place {
    fn new(hooks: &Path, stage: GitStage) -> Self {
        let name = stage.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        Self { hook: hooks.join(&name), kept: hooks.join(KEPT).join(&name), name }
    }

    /// What only somebody who says so wants.
    fn refuse(&self, repository: &Repository, hooks: &Path) -> Result<(), Failure> {
        let shown = self.hook.display();
        let (message, help) = match repository.owner(hooks) {
            Owner::Others => (
                format!("core.hooksPath is {}, which other repositories may use", hooks.display()),
                "with `--force` all of them raise the event; without core.hooksPath this one has a folder of its own",
            ),
            Owner::Tree if repository.tracks(&self.hook) => (
                format!("{shown} is a file of this repository, and would change for everybody"),
                "call `gatehook git hook STAGE \"$@\" || exit 1` in it, or use `--force`",
            ),
            _ if self.is_another() && self.has_other_kept() => (
                format!("there are two hooks to keep: {shown} and {}", self.kept.display()),
                "move one of them away; `--force` lets the first run, and keeps the other as it is under another name",
            ),
            _ => return Ok(()),
        };
        Err(Failure::new(Exit::No, message, Some(help.to_owned())))
    }

    /// Whether what stands there is ours.
    fn is_ours(&self) -> bool {
        let is_link = fs::symlink_metadata(&self.hook).is_ok_and(|meta| meta.is_symlink());
        !is_link && fs::read(&self.hook).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(MARK))
    }

    /// Whether something else stands there.
    fn is_another(&self) -> bool {
        fs::symlink_metadata(&self.hook).is_ok() && !self.is_ours()
    }

    fn has_other_kept(&self) -> bool {
        fs::symlink_metadata(&self.kept).is_ok() && fs::read(&self.kept).ok() != fs::read(&self.hook).ok()
    }

    /// Puts the hook there; says whether it runs another one first.
    fn install(&self) -> io::Result<bool> {
        if self.is_another() {
            if self.has_other_kept() {
                fs::rename(&self.kept, unused(&self.kept))?;
            }
            self.kept.parent().map_or(Ok(()), fs::create_dir_all)?;
            copy(&self.hook, &self.kept, |target| Path::new("..").join(target))?;
        }
        let chain = chain(&self.kept);
        let program = std::env::current_exe()?;
        let program = program.to_str().ok_or_else(|| io::Error::other("this program's path is not UTF-8"))?;
        let text = TEMPLATE.replace("STAGE", &self.name).replace("CHAIN", &chain).replace("PROGRAM", &quoted(program));
        let new = self.hook.with_file_name(format!("{}.gatehook-{}", self.name, std::process::id()));
        let written = fs::write(&new, text)
            .and_then(|()| fs::set_permissions(&new, fs::Permissions::from_mode(0o755)))
            .and_then(|()| fs::rename(&new, &self.hook));
        if written.is_err() {
            // What was begun is of no use; what was there still is.
            let _ = fs::remove_file(&new);
        }
        written.map(|()| fs::symlink_metadata(&self.kept).is_ok())
    }

    /// Takes the hook out; says whether another is back in its place.
    fn uninstall(&self) -> io::Result<bool> {
        let kept = fs::symlink_metadata(&self.kept);
        let back = match &kept {
            Ok(meta) if meta.is_symlink() => {
                let new = self.hook.with_file_name(format!("{}.gatehook-{}", self.name, std::process::id()));
                copy(&self.kept, &new, |target| target.strip_prefix("..").unwrap_or(target).to_owned())?;
                fs::rename(&new, &self.hook)?;
                fs::remove_file(&self.kept)?;
                true
            }
            Ok(_) => fs::rename(&self.kept, &self.hook).map(|()| true)?,
            Err(error) if error.kind() == ErrorKind::NotFound => fs::remove_file(&self.hook).map(|()| false)?,
            Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
        };
        // It stays where something else is in it.
        let _ = self.kept.parent().map(fs::remove_dir);
        Ok(back)
    }
}

/// A copy with its mode; a link whose target is relative as `moved` has it from there.
fn copy(from: &Path, to: &Path, moved: impl Fn(&Path) -> PathBuf) -> io::Result<()> {
    if !fs::symlink_metadata(from)?.is_symlink() {
        return fs::copy(from, to).map(drop);
    }
    let target = fs::read_link(from)?;
    let target = if target.is_relative() { moved(&target) } else { target };
    match fs::remove_file(to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => symlink(target, to),
    }
}

/// A name beside this one that nothing has.
fn unused(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = (1..).map(|number: u32| path.with_file_name(format!("{name}.{number}")));
    names.into_iter().find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| path.with_extension("old"))
}

/// How the hook that was there is run. A script of a shell is told the path that it had, for some look for what is beside
/// them, and for their own name.
fn chain(kept: &Path) -> String {
    let Ok(bytes) = fs::read(kept) else { return String::new() };
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let run = match shell(&String::from_utf8_lossy(first)) {
        Some(shell) => format!("{shell} -c 'kept=$1; shift; . \"$kept\"' \"$0\" \"$kept\" \"$@\""),
        None => "\"$kept\" \"$@\"".to_owned(),
    };
    format!("if [ -x \"$kept\" ]; then\n    {run} || exit\nfi\n")
}

/// The shell of a script, with its flags, where its first line names one plainly.
fn shell(first: &str) -> Option<String> {
    let words: Vec<&str> = first.strip_prefix("#!")?.split_whitespace().collect();
    let is_path =
        |word: &str| word.starts_with('/') && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let is_flag = |word: &&str| word.strip_prefix('-').is_some_and(|it| it.chars().all(|c| c.is_ascii_alphabetic()));
    let name = |word: &str| word.rsplit('/').next().is_some_and(|name| SHELLS.contains(&name));
    let is_plain = match words.as_slice() {
        [env, shell] if env.ends_with("/env") => is_path(env) && SHELLS.contains(shell),
        [shell, flags @ ..] => {
            is_path(shell) && name(shell) && flags.iter().all(|flag| is_flag(flag) && !flag.contains(['c', 's']))
        }
        [] => false,
    };
    is_plain.then(|| words.join(" "))
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_a_shell_is_known_by_its_first_line() {
        for (first, expected) in [
            ("#!/bin/sh", Some("/bin/sh")),
            ("#! /bin/sh -e", Some("/bin/sh -e")),
            ("#!/usr/bin/env bash\r", Some("/usr/bin/env bash")),
            ("#!/bin/bash -eu", Some("/bin/bash -eu")),
            ("#!/bin/sh -c", None),
            ("#!/bin/sh;evil", None),
            ("#!/usr/bin/env -S bash -e", None),
            ("#!/usr/bin/env python3", None),
            ("#!/usr/bin/python3", None),
            ("echo", None),
            ("", None),
        ] {
            assert_eq!(shell(first).as_deref(), expected, "{first:?}");
        }
    }

    #[test]
    fn a_word_is_one_word_whatever_is_in_it() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
