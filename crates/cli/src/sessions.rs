//! Where sessions are kept, and which one an identity on the command line means.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gatehook_store::{Listed, Named, SessionArchive, SessionError};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::places::home;

/// Where nobody says where to keep them.
const NO_PLACE: &str = "sessions have no place: neither XDG_STATE_HOME nor HOME is set";

/// The file that keeps sessions. It stands beside the usual one of traces, whatever `traces.path` says: what was said
/// word for word does not follow what is thrown away after a while.
pub(crate) fn path(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    home(env, "XDG_STATE_HOME", ".local/state").map(|folder| folder.join("gatehook/sessions.db"))
}

/// What was kept; `None` where no session ever was.
pub(crate) fn archive(env: &BTreeMap<String, String>) -> Result<Option<SessionArchive>, Failure> {
    let path = path(env).ok_or_else(|| Failure::new(Exit::System, NO_PLACE, None))?;
    Ok(SessionArchive::open(&path)?)
}

/// The session that an identity, or the beginning of one, means.
pub(crate) fn named(archive: &SessionArchive, id: &str) -> Result<Listed, Failure> {
    match archive.head(id)? {
        Named::One(session) => Ok(session),
        Named::Nobody => Err(missing(id)),
        Named::Several(ids) => {
            let help = format!("write more of it: {}", ids.join(", "));
            Err(Failure::usage(format!("several sessions begin with `{id}`"), Some(help)))
        }
    }
}

/// There is no such session.
pub(crate) fn missing(id: &str) -> Failure {
    let help = "`gatehook sessions` lists them".to_owned();
    Failure::usage(format!("there is no session `{id}`"), Some(help))
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::new(Exit::System, error.to_string(), Some(error.remedy().to_owned()))
    }
}
