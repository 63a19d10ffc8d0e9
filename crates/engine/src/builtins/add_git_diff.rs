//! `add_git_diff`: the model knows what has changed since the last commit.

use std::sync::Arc;

use super::Arguments;
use super::git::AskGit;
use super::place::Place;
use crate::handler::{DefinitionError, Handler, HookCall, Reply, Run};

/// Bytes that the model is shown.
const LIMIT: usize = 4096;

struct AddGitDiff {
    git: AskGit,
    full: bool,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let full = arguments.args.iter().any(|arg| arg == "full");
    if arguments.is_native() && !matches!(arguments.args, [] | [_] if full || arguments.args.is_empty()) {
        return Err(Arguments::wrong("`add_git_diff` takes `full` or nothing", "as in `args: [full]`"));
    }
    Ok(Arc::new(AddGitDiff { git: AskGit::new(Place::of(arguments)?), full }))
}

impl Handler for AddGitDiff {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        // What is staged counts too. Before the first commit there is nothing else to compare with than the index.
        const STAT: &[&[&str]] = &[
            &["diff", "--no-ext-diff", "--no-textconv", "--stat", "HEAD"],
            &["diff", "--no-ext-diff", "--no-textconv", "--stat"],
        ];
        const FULL: &[&[&str]] =
            &[&["diff", "--no-ext-diff", "--no-textconv", "HEAD"], &["diff", "--no-ext-diff", "--no-textconv"]];
        let questions = if self.full { FULL } else { STAT };
        Box::pin(
            async move { self.git.ask(call, ("core/git-diff", "Git diff"), questions, LIMIT).await.map(Reply::Direct) },
        )
    }
}
