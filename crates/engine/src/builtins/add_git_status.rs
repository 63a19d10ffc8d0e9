//! `add_git_status`: the model knows what has changed, file by file.

use std::sync::Arc;

use super::Arguments;
use super::git::AskGit;
use super::place::Place;
use crate::handler::{DefinitionError, Handler, HookCall, Reply, Run};

/// Bytes that the model is shown.
const LIMIT: usize = 4096;

struct AddGitStatus(AskGit);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("add_git_status")?;
    Ok(Arc::new(AddGitStatus(AskGit::new(Place::of(arguments)?))))
}

impl Handler for AddGitStatus {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        const QUESTION: &[&str] = &["status", "--short", "--branch"];
        Box::pin(async move {
            self.0.ask(call, ("core/git-status", "Git status"), &[QUESTION], LIMIT).await.map(Reply::Direct)
        })
    }
}
