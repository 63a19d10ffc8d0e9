//! The session that begins, or goes on.

use std::collections::BTreeMap;
use std::path::Path;

use gatehook_agent::conversation::Conversation;
use gatehook_agent::session::Beginning;
use gatehook_store::{Listed, SessionArchive};

use crate::args::AgentArgs;
use crate::failure::Failure;
use crate::sessions::{archive, missing, named};

/// The one that the command line names, as it was kept; a new one where it names none.
pub(super) fn beginning(
    args: &AgentArgs,
    env: &BTreeMap<String, String>,
    workspace: &Path,
) -> Result<Beginning, Failure> {
    if args.resume.is_none() && !args.continues {
        return Ok(new("startup"));
    }
    let none = || args.resume.as_deref().map_or_else(|| nothing_here(workspace), missing);
    let archive = archive(env)?.ok_or_else(none)?;
    let listed = match &args.resume {
        Some(id) => named(&archive, id)?,
        None => archive.latest(&workspace.to_string_lossy())?.ok_or_else(none)?,
    };
    again(&archive, listed)
}

/// A session in which nothing has been said.
pub(super) fn new(source: &'static str) -> Beginning {
    let id = uuid::Uuid::new_v4().to_string().into();
    Beginning { id, source, conversation: Conversation::default(), model: None }
}

/// The session of this identity, or of this beginning of one.
pub(super) fn resumed(id: &str, env: &BTreeMap<String, String>) -> Result<Beginning, Failure> {
    let archive = archive(env)?.ok_or_else(|| missing(id))?;
    let listed = named(&archive, id)?;
    again(&archive, listed)
}

fn again(archive: &SessionArchive, listed: Listed) -> Result<Beginning, Failure> {
    let kept = archive.entries(&listed.head.id, 1)?;
    let mut conversation = Conversation::of(&listed.head, kept.iter().map(|kept| &kept.entry));
    conversation.close();
    Ok(Beginning { id: listed.head.id, source: "resume", conversation, model: None })
}

fn nothing_here(workspace: &Path) -> Failure {
    let help = "`gatehook sessions` lists those of other folders, and `--resume ID` goes on with one".to_owned();
    Failure::usage(format!("no session of {} is kept", workspace.display()), Some(help))
}
