//! A program that lives beside this one and is spoken with over its pipes, for those that know what is said.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{OFlags, fcntl_setfl};

use super::keeper::Group;

/// A running program, in a process group of its own. Its stderr goes to the log, within bounds. Dropped, all of the
/// group is ended: with notice first, and soon after without.
pub struct Living {
    group: Arc<Group>,
}

/// The pipes of a program, which do not block.
#[derive(Debug)]
pub struct Pipes {
    /// Where it reads.
    pub stdin: OwnedFd,
    /// Where it writes.
    pub stdout: OwnedFd,
}

impl Living {
    /// Starts a program; `name` stands for it in the log. Blocks for as long as a start takes.
    pub fn start(mut command: Command, name: &str) -> io::Result<(Self, Pipes)> {
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (group, mut child) = Group::spawn(command, |mut command| command.spawn(), name.into())?;
        // From here on a failure ends it.
        let living = Self { group };
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).ok_or_else(missing)?;
        let pipes = Pipes { stdin: stdin.into(), stdout: stdout.into() };
        for pipe in [&pipes.stdin, &pipes.stdout] {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        Ok((living, pipes))
    }

    /// What it has written to stderr of late.
    pub fn last_words(&self) -> String {
        self.group.last_words()
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.group.end();
    }
}

impl std::fmt::Debug for Living {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Living").finish_non_exhaustive()
    }
}
