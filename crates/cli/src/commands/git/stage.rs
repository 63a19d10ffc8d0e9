//! What the installed hooks call: is the guard there, and what does it say of this commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gatehook_engine::text;
use gatehook_events::{Event, Input, Verdict};

use super::repository::{bytes, line};
use crate::args::GitStage;
use crate::commands::list;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Reading};
use crate::print::Printer;
use crate::raising;

/// The index of a commit of some files alone is not the one that git would take by itself.
const INDEX: &str = "GIT_INDEX_FILE";
/// What git puts between a message and what it shows below it.
const SCISSORS: &str = " ------------------------ >8 ------------------------";

/// Runs one stage. Whatever ends in neither 0 nor 1 is no answer of the guard's.
pub(super) fn run(stage: GitStage, args: &[PathBuf], printer: &mut Printer) -> Result<Exit, Failure> {
    let env = policy::environment();
    let here = std::env::current_dir()?;
    let policy = Reading::of(&[], "native", &env)?.policy()?;
    let index = env.get(INDEX).map(|index| (INDEX.to_owned(), here.join(index).to_string_lossy().into_owned()));
    let executor = policy.executor_with(&env, &index.into_iter().collect())?;
    if stage == GitStage::PreCommit {
        return Ok(Exit::Done);
    }
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&format!("gatehook: {note}")));
    if !executor.has(Event::OnGitCommit) {
        return Ok(Exit::Done);
    }
    let Some(path) = args.first() else { return Err(Failure::usage("git gives the message's file", None)) };
    let input = Input {
        files: Some(files(&here)?),
        message: Some(message(&here, path, &env)?.into()),
        branch: Some(branch(&here)?.into()),
        user: env.get("USER").map(|user| user.as_str().into()),
        ..Input::default()
    };
    let Some(verdict) = raising::one(&policy, executor, Event::OnGitCommit, &input, printer)? else {
        return Ok(Exit::Stopped);
    };
    tell(&verdict, printer);
    Ok(if verdict.allowed { Exit::Done } else { Exit::No })
}

/// What a person at a terminal should know; nothing where there is nothing to say.
fn tell(verdict: &Verdict, printer: &mut Printer) {
    let notice = text::plain(&verdict.system_message);
    if !notice.trim().is_empty() {
        printer.note(&format!("gatehook: {}", notice.trim()));
    }
    if !verdict.allowed {
        let message = verdict.refusal.as_ref().and_then(|refusal| refusal.user_message.as_deref());
        let message = text::plain(message.unwrap_or(&verdict.message));
        let message = if message.trim().is_empty() { "a hook says no" } else { message.trim() };
        printer.note(&format!("gatehook: this commit is refused: {message}"));
    }
}

/// Files of the commit, as it differs from the one before; both names of one that was renamed.
fn files(here: &Path) -> Result<Vec<String>, Failure> {
    let printed = bytes(here, &["diff", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "-z"], None)?;
    let names = printed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The branch; `HEAD` where there is none.
fn branch(here: &Path) -> Result<String, Failure> {
    // It fails, and says nothing, where no branch is checked out.
    Ok(line(here, &["symbolic-ref", "--quiet", "--short", "HEAD"]).unwrap_or_else(|_| "HEAD".to_owned()))
}

/// The message as git will keep it. git takes out comments only where somebody has edited the message: what was given by
/// `-m` is shown with them, for they are committed.
fn message(here: &Path, path: &Path, env: &BTreeMap<String, String>) -> Result<String, Failure> {
    let written = std::fs::read(here.join(path))
        .map_err(|error| Failure::usage(format!("the message in {} cannot be read: {error}", path.display()), None))?;
    let written = String::from_utf8_lossy(&written).into_owned();
    // git says so: "no editor will be launched".
    let is_edited = env.get("GIT_EDITOR").is_none_or(|editor| editor != ":");
    // It fails where nothing is configured.
    let cleanup = line(here, &["config", "commit.cleanup"]).unwrap_or_default();
    let (kept, strip) = match cleanup.as_str() {
        "verbatim" | "whitespace" => (written.as_str(), false),
        _ if !is_edited => (written.as_str(), false),
        "scissors" => (above_scissors(&written), false),
        _ => (above_scissors(&written), true),
    };
    let args: &[&str] = if strip { &["stripspace", "--strip-comments"] } else { &["stripspace"] };
    Ok(String::from_utf8_lossy(&bytes(here, args, Some(kept.as_bytes()))?).into_owned())
}

fn above_scissors(message: &str) -> &str {
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        if line.trim_end().ends_with(SCISSORS) {
            return message.get(..at).unwrap_or(message);
        }
        at += line.len();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_shows_below_a_message_is_none_of_it() {
        let shown = format!("Say hello\n\n#{SCISSORS}\ndiff --git a b\n");
        assert_eq!(above_scissors(&shown), "Say hello\n\n");
        assert_eq!(above_scissors("Say hello\n"), "Say hello\n");
    }
}
