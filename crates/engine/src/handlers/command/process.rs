//! One command's process group, from its start until nothing of it is left.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::reaper::{self, Mark, Remains};
use super::streams::{Capture, Feed};

/// How long a command that is told to end may take to do so.
const GRACE: Duration = Duration::from_millis(200);

/// A running command: the leader of its own process group. The leader stays unreaped as long as this lives, so that the
/// group's number means no other group. Dropped, it kills the group and leaves the reaping to [`reaper`].
pub(super) struct Process {
    group: Pid,
    /// `None` once it was handed on.
    leader: Option<AsyncFd<OwnedFd>>,
    slot: Option<OwnedSemaphorePermit>,
    mark: Option<Mark>,
    feed: Option<Feed>,
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
}

/// What this end has of a command's pipes.
struct Pipes {
    feed: Option<Feed>,
    stdout: Capture,
    stderr: Capture,
}

/// It wrote more than it may.
pub(super) struct TooMuchOutput;

impl Process {
    /// Starts `command` by `spawn`, and writes `line` to it. It must have three pipes and a process group of its own.
    pub(super) fn spawn(
        command: Command,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
        line: Bytes,
        slot: OwnedSemaphorePermit,
    ) -> io::Result<Self> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        Self::start(command, spawn, slot, |child| {
            Ok(Pipes {
                feed: Feed::start(child.stdin.take().ok_or_else(missing)?.into(), line)?,
                stdout: Capture::new(child.stdout.take().ok_or_else(missing)?.into())?,
                stderr: Capture::new(child.stderr.take().ok_or_else(missing)?.into())?,
            })
        })
    }

    /// Starts `command` by `spawn`, with nothing on stdin, and stdout and stderr in one pipe, which is `stdout` here. It
    /// must have a process group of its own.
    pub(super) fn spawn_joined(
        mut command: Command,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
        slot: OwnedSemaphorePermit,
    ) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        Self::start(command, spawn, slot, |_| {
            Ok(Pipes { feed: None, stdout: Capture::new(reader.into())?, stderr: Capture::closed() })
        })
    }

    fn start(
        mut command: Command,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
        slot: OwnedSemaphorePermit,
        pipes: impl FnOnce(&mut Child) -> io::Result<Pipes>,
    ) -> io::Result<Self> {
        let mark = reaper::mark();
        if let Some(mark) = &mark {
            command.env(reaper::MARK_VARIABLE, mark.to_string());
        }
        let mut child = spawn(command)?;
        Self::attach(&mut child, slot, mark, pipes).inspect_err(|_| {
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
        })
    }

    fn attach(
        child: &mut Child,
        slot: OwnedSemaphorePermit,
        mark: Option<Mark>,
        pipes: impl FnOnce(&mut Child) -> io::Result<Pipes>,
    ) -> io::Result<Self> {
        let group = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let leader = watch(pidfd_open(group, PidfdFlags::empty())?)?;
        let Pipes { feed, stdout, stderr } = pipes(child)?;
        Ok(Self { group, leader: Some(leader), slot: Some(slot), mark, feed, stdout, stderr })
    }

    /// Moves bytes until the leader has exited, then takes what is in the pipes and waits for nothing more, whoever
    /// else may hold them. Cancel safe.
    pub(super) async fn run(&mut self) -> Result<(), TooMuchOutput> {
        let mut exited = false;
        while !exited {
            exited = self.step().await;
            if exited {
                self.stdout.drain();
                self.stderr.drain();
            }
            if self.stdout.is_over_limit() || self.stderr.is_over_limit() {
                return Err(TooMuchOutput);
            }
        }
        Ok(())
    }

    /// Moves bytes until the leader has exited, and hands on what comes on stdout, however much that is. Cancel safe: what
    /// was not handed on is still there.
    pub(super) async fn pour(&mut self, into: &mut (dyn FnMut(&[u8]) + Send)) {
        let mut exited = false;
        while !exited {
            exited = self.step().await;
            if exited {
                self.stdout.drain();
            }
            self.stdout.hand_on(into);
        }
    }

    /// Ends the group with notice: SIGTERM (SIGCONT for what is stopped), SIGKILL after the grace period. Bytes are
    /// taken meanwhile, so that nothing hangs in a write. Cancel safe: the group is killed then.
    pub(super) async fn end(&mut self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        let gone = async {
            let mut exited = false;
            while !(exited && self.stdout.is_closed() && self.stderr.is_closed()) {
                exited |= self.step_after(exited).await;
                self.stdout.discard_excess();
                self.stderr.discard_excess();
            }
        };
        let _ = timeout(GRACE, gone).await;
        self.signal(Signal::KILL);
        // Nothing outlives SIGKILL but a process in an uninterruptible wait, which is the reaper's then.
        if timeout(GRACE, self.exited()).await.is_ok() {
            let _ = self.reap();
        }
    }

    /// Ends what is left of the group and gives the leader's exit code, -1 for a signal. The leader must have exited.
    pub(super) fn reap(&mut self) -> io::Result<i32> {
        self.signal(Signal::KILL);
        let Some(leader) = self.leader.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let adopting = self.mark.is_some();
        // With adoption the members of the group become our children too: the leader is reaped with them.
        let keep = if adopting { WaitIdOptions::NOWAIT } else { WaitIdOptions::empty() };
        let leader = leader.into_inner();
        let status = waitid(WaitId::PidFd(leader.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG | keep)?;
        if adopting {
            self.hand_on(leader);
        }
        let status = status.ok_or(io::ErrorKind::WouldBlock)?;
        Ok(status.exit_status().unwrap_or(-1))
    }

    async fn step(&mut self) -> bool {
        self.step_after(false).await
    }

    /// Waits for one thing to happen and does what it asks for; true where the leader has exited. Cancel safe.
    async fn step_after(&mut self, exited: bool) -> bool {
        let leader = self.leader.as_ref();
        tokio::select! {
            biased;
            () = exit_of(leader), if !exited => true,
            () = self.stdout.fill() => false,
            () = self.stderr.fill() => false,
            () = Feed::go_on(&mut self.feed) => false,
        }
    }

    async fn exited(&self) {
        exit_of(self.leader.as_ref()).await;
    }

    fn signal(&self, signal: Signal) {
        if self.leader.is_some() {
            let _ = kill_process_group(self.group, signal);
        }
    }

    fn hand_on(&mut self, leader: OwnedFd) {
        reaper::bury(Remains { leader, group: self.group, _slot: self.slot.take(), mark: self.mark.take() });
    }
}

#[expect(deprecated, reason = "the new constructor is unsafe, and an OwnedFd keeps what it asks for")]
fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}

/// Waits until the leader is a zombie. Cancel safe.
async fn exit_of(leader: Option<&AsyncFd<OwnedFd>>) {
    if let Some(leader) = leader {
        // The one error is a runtime that shuts down; then this is dropped.
        if leader.readable().await.is_ok() {
            return;
        }
    }
    std::future::pending().await
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(leader) = self.leader.take() {
            self.hand_on(leader.into_inner());
        }
    }
}
