//! What the processes of a hook may do and use, on top of what those of their user may.

use std::num::NonZeroU64;

/// Bounds of a hook's processes; the default has none.
///
/// ```
/// use gatehook_engine::definition::{Confinement, Sandbox};
///
/// let sandbox = Sandbox { no_network: true, write: Some(vec!["cache".into()]), required: true };
/// let confinement = Confinement { max_memory: Some(512 << 20), sandbox: Some(sandbox), ..Confinement::default() };
/// assert!(!confinement.is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Bytes of memory that each process may have for itself (`RLIMIT_DATA`).
    pub max_memory: Option<u64>,
    /// Seconds of processor time that each process may take (`RLIMIT_CPU`).
    pub max_cpu_seconds: Option<NonZeroU64>,
    /// Bytes of a file that it may write (`RLIMIT_FSIZE`).
    pub max_file_size: Option<u64>,
    /// What the system keeps from it.
    pub sandbox: Option<Sandbox>,
    /// Whose rights it has, a name or a number of the system's accounts; `None` is ours.
    pub user: Option<String>,
}

/// What the system keeps from a hook's processes, all of them and for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// No TCP port can be bound and none connected to.
    pub no_network: bool,
    /// The files and folders that can be changed, and nothing else; `None` is what their user may. Relative ones are
    /// joined to the hook's working directory.
    pub write: Option<Vec<String>>,
    /// It does not run where the system cannot do all of that.
    pub required: bool,
}

impl Confinement {
    /// Whether there is no bound.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
