//! A sandbox of the Linux kernel's Landlock (<https://docs.kernel.org/userspace-api/landlock.html>).
//!
//! A thread restricts itself and starts the hook's processes, which inherit what holds for it. It does nothing else, and
//! ends with the hook. No launcher, no fork, and the rest of this program stays as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};

use crate::definition::Sandbox;
use crate::handler::DefinitionError;

/// Without truncation (Linux 6.2) a file could be emptied from anywhere.
const WRITES: ABI = ABI::V3;
/// Devices' own commands (Linux 6.10), where the kernel knows them.
const MORE_WRITES: ABI = ABI::V5;
/// TCP (Linux 6.7).
const NETWORK: ABI = ABI::V4;
/// Signals to processes outside, and abstract Unix sockets there (Linux 6.12), where the kernel knows them.
const SCOPES: ABI = ABI::V6;

/// What scripts write to and means nothing.
const ALWAYS_WRITTEN: &str = "/dev/null";

/// The thread that starts the processes of one hook, or of one host's tool. Dropped, it ends.
pub(in crate::handlers) struct Spawner {
    starts: Sender<Start>,
}

struct Start {
    command: Command,
    started: SyncSender<io::Result<Child>>,
}

impl Spawner {
    /// A thread within `sandbox`, or why there is none on this system.
    pub(in crate::handlers) fn start(
        sandbox: &Sandbox,
        working_dir: &Path,
        hook: &str,
    ) -> Result<Self, DefinitionError> {
        let rules = Rules::of(sandbox, working_dir)?;
        let ((starts, inbox), (entered, entry)) = (channel(), sync_channel(1));
        let thread = std::thread::Builder::new().name("hook-sandbox".to_owned());
        let run = move || {
            let status = rules.enter();
            let may_start = status.is_ok();
            let _ = entered.send(status);
            if may_start {
                serve(&inbox);
            }
        };
        thread.spawn(run).map_err(|error| wrong(format!("its thread could not be started: {error}"), ""))?;
        let lost = |_| wrong("its thread has ended".to_owned(), "");
        let status = entry.recv().map_err(lost)?.map_err(|error| unavailable(&error.to_string()))?;
        if let Some(lack) = lack(sandbox, status.landlock) {
            if sandbox.required {
                return Err(unavailable(&lack));
            }
            tracing::warn!(hook, "{lack}: it runs without all of its sandbox");
        }
        Ok(Self { starts })
    }

    /// Starts `command`. Blocks for as long as a start takes, and those asked for before.
    pub(in crate::handlers) fn spawn(&self, command: Command) -> io::Result<Child> {
        let ended = || io::Error::other("the thread of its sandbox has ended");
        let (started, child) = sync_channel(1);
        self.starts.send(Start { command, started }).map_err(|_| ended())?;
        child.recv().map_err(|_| ended())?
    }
}

fn serve(inbox: &Receiver<Start>) {
    while let Ok(Start { mut command, started }) = inbox.recv() {
        // Whoever asked waits for it.
        let _ = started.send(command.spawn());
    }
}

/// What the thread asks of the kernel.
struct Rules {
    no_network: bool,
    /// Files and folders, opened.
    write: Option<Vec<(PathFd, bool)>>,
}

impl Rules {
    fn of(sandbox: &Sandbox, working_dir: &Path) -> Result<Self, DefinitionError> {
        let open = |path: PathBuf| -> Result<_, DefinitionError> {
            let missing = |error: &dyn std::fmt::Display| {
                let message = format!("`write` names {}, which cannot be opened: {error}", path.display());
                wrong(message, "create it first, or name the folder that it will lie in")
            };
            let is_dir = path.metadata().map_err(|error| missing(&error))?.is_dir();
            Ok((PathFd::new(&path).map_err(|error| missing(&error))?, is_dir))
        };
        let paths = |write: &Vec<String>| {
            let named = write.iter().map(|path| working_dir.join(path));
            named.chain([PathBuf::from(ALWAYS_WRITTEN)]).map(open).collect()
        };
        Ok(Self { no_network: sandbox.no_network, write: sandbox.write.as_ref().map(paths).transpose()? })
    }

    /// Restricts the thread that calls it, and all that it starts, for ever. What the kernel does not know is left out.
    fn enter(self) -> Result<RestrictionStatus, RulesetError> {
        let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
        if self.write.is_some() {
            ruleset = ruleset.handle_access(AccessFs::from_write(MORE_WRITES))?;
        }
        if self.no_network {
            ruleset = ruleset.handle_access(AccessNet::from_all(NETWORK))?;
        }
        let mut created = ruleset.scope(Scope::from_all(SCOPES))?.create()?;
        for (path, is_dir) in self.write.into_iter().flatten() {
            let (all, of_files) = (AccessFs::from_write(MORE_WRITES), AccessFs::from_file(MORE_WRITES));
            created = created.add_rule(PathBeneath::new(path, if is_dir { all } else { all & of_files }))?;
        }
        created.restrict_self()
    }
}

/// What the kernel lacks for this sandbox.
fn lack(sandbox: &Sandbox, kernel: LandlockStatus) -> Option<String> {
    let (needed, what) = if sandbox.no_network { (NETWORK, "TCP") } else { (WRITES, "all writes") };
    match kernel {
        LandlockStatus::Available { effective_abi, .. } if effective_abi >= needed => None,
        LandlockStatus::Available { effective_abi, .. } => Some(format!(
            "the kernel's Landlock is of version {effective_abi}, and {needed} is the first that holds {what}"
        )),
        LandlockStatus::NotEnabled => Some("the kernel's Landlock is switched off".to_owned()),
        LandlockStatus::NotImplemented => Some("the kernel has no Landlock".to_owned()),
    }
}

fn unavailable(cause: &str) -> DefinitionError {
    let help = "use Linux 6.7 or later with Landlock, or let the hook run without by `sandbox: {required: false, …}`";
    wrong(format!("this system cannot hold its sandbox: {cause}"), help)
}

fn wrong(message: String, help: &str) -> DefinitionError {
    DefinitionError { field: "sandbox", message, help: (!help.is_empty()).then(|| help.to_owned()) }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_kernel_that_cannot_hold_a_sandbox_is_told_from_one_that_can() {
        let abi = |effective_abi| LandlockStatus::Available { effective_abi, kernel_abi: None };
        let lacks =
            |no_network, kernel| lack(&Sandbox { no_network, write: Some(vec![]), required: true }, kernel).is_some();
        for (kernel, writes, network) in [
            (LandlockStatus::NotImplemented, true, true),
            (LandlockStatus::NotEnabled, true, true),
            (abi(ABI::V2), true, true),
            (abi(ABI::V3), false, true),
            (abi(ABI::V4), false, false),
            (abi(ABI::V9), false, false),
        ] {
            assert_eq!((lacks(false, kernel), lacks(true, kernel)), (writes, network), "{kernel:?}");
        }
    }
}
