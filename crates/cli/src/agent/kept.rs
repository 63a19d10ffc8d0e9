//! The session that begins, or goes on.

use std::collections::BTreeMap;
use std::path::Path;

use gatehook_agent::conversation::Conversation;
use gatehook_agent::session::Beginning;

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
        let id = uuid::Uuid::new_v4().to_string().into();
        return Ok(Beginning { id, source: "startup", conversation: Conversation::default() });
    }
    let none = || args.resume.as_deref().map_or_else(|| nothing_here(workspace), missing);
    let archive = archive(env)?.ok_or_else(none)?;
    let listed = match &args.resume {
        Some(id) => named(&archive, id)?,
        None => archive.latest(&workspace.to_string_lossy())?.ok_or_else(none)?,
    };
    let kept = archive.entries(&listed.head.id, 1)?;
    let mut conversation = Conversation::of(&listed.head, kept.iter().map(|kept| &kept.entry));
    conversation.close();
    Ok(Beginning { id: listed.head.id, source: "resume", conversation })
}

fn nothing_here(workspace: &Path) -> Failure {
    let help = "`gatehook sessions` lists those of other folders, and `--resume ID` goes on with one".to_owned();
    Failure::usage(format!("no session of {} is kept", workspace.display()), Some(help))
}
