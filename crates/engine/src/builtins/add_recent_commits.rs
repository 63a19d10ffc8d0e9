//! `add_recent_commits`: the model knows what was done before.

use std::sync::Arc;

use super::Arguments;
use super::git::AskGit;
use super::place::Place;
use crate::handler::{DefinitionError, Handler, HookCall, Reply, Run};

/// Bytes that the model is shown.
const LIMIT: usize = 16 << 10;
const DEFAULT: u32 = 10;

struct AddRecentCommits {
    git: AskGit,
    count: String,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let given = arguments.args.first().map(|count| count.trim().parse::<u32>().ok().filter(|count| *count > 0));
    if arguments.is_native() && (given == Some(None) || arguments.args.len() > 1) {
        return Err(Arguments::wrong("`add_recent_commits` takes one number above 0", "as in `args: [\"5\"]`"));
    }
    let count = format!("--max-count={}", given.flatten().unwrap_or(DEFAULT));
    Ok(Arc::new(AddRecentCommits { git: AskGit::new(Place::of(arguments)?), count }))
}

impl Handler for AddRecentCommits {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            // Checking signatures would run a program that the repository may name.
            let question = ["log", "--oneline", "--no-decorate", "--no-show-signature", &self.count];
            let what = ("core/recent-commits", "Recent commits");
            self.git.ask(call, what, &[&question], LIMIT).await.map(Reply::Direct)
        })
    }
}
