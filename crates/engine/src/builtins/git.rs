//! How builtins ask git: nothing of the caller's repository variables, no locks, no pager, and none of the programs that
//! a repository's own configuration may name for these commands.

use std::path::Path;
use std::sync::Arc;

use gatehook_events::{Event, Output};

use super::place::{Place, shortened};
use crate::handler::{HandlerError, HookCall};
use crate::handlers::command::tool::{Told, Tool, Until};
use crate::repository;

/// Variables that point git elsewhere than where it is asked.
const ELSEWHERE: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
    "GIT_TRACE",
];

const ALWAYS: &[&str] =
    &["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "color.ui=false"];

/// The `git` of the hook's `PATH`; `None` where there is none.
pub(super) fn find(env: &std::collections::BTreeMap<String, String>) -> Option<Tool> {
    let mut git = Tool::find("git", env)?;
    git.env.retain(|name, _| !ELSEWHERE.contains(&name.as_str()));
    for (name, value) in [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")] {
        git.env.insert(name.to_owned(), value.to_owned());
    }
    Some(git)
}

/// Runs git.
pub(super) async fn run(
    git: &Tool,
    args: &[&str],
    dir: &Path,
    until: Until<'_>,
    limit: usize,
) -> Result<Told, HandlerError> {
    git.run(ALWAYS.iter().chain(args), dir, until, limit).await
}

/// What git says, as context for the model.
pub(super) struct AskGit {
    place: Arc<Place>,
    git: Option<Tool>,
}

impl AskGit {
    pub(super) fn new(place: Arc<Place>) -> Self {
        let git = find(&place.env);
        if git.is_none() {
            tracing::warn!("there is no git on PATH: nothing is said about repositories");
        }
        Self { place, git }
    }

    /// At most `limit` bytes of what the first of `questions` that git answers comes to. Outside of a repository, and
    /// where git fails or has nothing to say, that is nothing.
    pub(super) async fn ask(
        &self,
        call: HookCall<'_>,
        (key, label): (&str, &str),
        questions: &[&[&str]],
        limit: usize,
    ) -> Result<Option<Output>, HandlerError> {
        let Some(git) = &self.git else { return Ok(None) };
        let dir = self.place.dir(call.input);
        let looked = dir.clone();
        if super::aside(call, move || repository::root(&looked).is_none()).await? {
            return Ok(None);
        }
        for question in questions {
            let told = run(git, question, &dir, call.into(), limit.saturating_mul(2)).await?;
            if told.exit_code == 0 || told.cut {
                return Ok(self.context(call.event, key, label, &String::from_utf8_lossy(&told.stdout), limit));
            }
        }
        Ok(None)
    }

    fn context(&self, event: Event, key: &str, label: &str, said: &str, limit: usize) -> Option<Output> {
        let said = shortened(said, limit);
        (!said.trim().is_empty()).then(|| self.place.say(event, key, label, format!("{label}:\n{said}")))
    }
}
