//! Ends and reaps what cannot be waited for where it ran: commands whose future was dropped and, where the host opted
//! in, processes that left their command's process group.
//!
//! One thread, started on first use. Every group it is handed has been killed, so its waits are short.
//!
//! **The boundary.** A process that calls `setsid` leaves the group that is killed. After [`adopt_orphans`] such a
//! process becomes a child of this one when its parent has ended; it is recognised by its session, attributed by a
//! variable in its environment, and killed once its command has ended, some 100 ms later at most. One that has cleared
//! its environment, has changed its user, or runs under another adopter (`systemd-run`, a container engine) is out of
//! reach. So is all of this where the system is not Linux.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper, waitid};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

use crate::handlers::worker::keeper;

/// Tells which run a process belongs to; set only after [`adopt_orphans`].
pub(in crate::handlers) const MARK_VARIABLE: &str = "GATEHOOK_RUN";

/// Processes that left their group are looked for at most once in this time: it reads the process table.
const BETWEEN_SEARCHES: Duration = Duration::from_millis(100);

static ADOPTING: AtomicBool = AtomicBool::new(false);
static NEXT_RUN: AtomicU64 = AtomicU64::new(1);
static LIVE_RUNS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
static REAPER: LazyLock<Option<Sender<Task>>> = LazyLock::new(start);

/// Makes this process the parent of every orphan below it, so that what a hook left running outside of its process
/// group is ended too. For a program to call once, before it starts anything; a library must not call it for its host.
/// No part of the program may start children in a session of their own. See the module for what is out of reach.
///
/// Fails where the system has no such thing.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTING.store(true, Ordering::Release);
    Ok(())
}

/// Waits until what hooks left running outside of their process groups is ended too, but no longer than `patience`. For
/// a program that has called [`adopt_orphans`] to call before it exits: what it does not end by then lives on. Workers
/// are ended in any case. Blocks.
pub fn end_leftovers(patience: Duration) {
    let begin = Instant::now();
    keeper::end_all(patience);
    let patience = patience.saturating_sub(begin.elapsed());
    let (done, settled) = mpsc::channel();
    if settle(Box::new(move || {
        let _ = done.send(());
    })) {
        let _ = settled.recv_timeout(patience);
    }
}

/// Waits until what ended runs left outside of their groups is ended too, but no longer than `patience`; where nothing is
/// adopted, not at all. Cancel safe.
pub(super) async fn settled(patience: Duration) {
    let (done, settled) = oneshot::channel();
    if settle(Box::new(move || {
        let _ = done.send(());
    })) {
        let _ = timeout(patience, settled).await;
    }
}

/// Has leftovers looked for until there are none; false where nobody does that.
fn settle(done: Box<dyn FnOnce() + Send>) -> bool {
    ADOPTING.load(Ordering::Acquire) && REAPER.as_ref().is_some_and(|reaper| reaper.send(Task::Settle(done)).is_ok())
}

/// What the thread is asked to do.
enum Task {
    Bury(Remains),
    /// Look for leftovers until there are none, and say so.
    Settle(Box<dyn FnOnce() + Send>),
}

/// One run of a command, as its processes name it.
pub(in crate::handlers) struct Mark {
    run: u64,
}

/// The mark of a new run, where orphans are adopted.
pub(in crate::handlers) fn mark() -> Option<Mark> {
    ADOPTING.load(Ordering::Acquire).then(|| {
        let run = NEXT_RUN.fetch_add(1, Ordering::Relaxed);
        live_runs().insert(run);
        Mark { run }
    })
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", getpid().as_raw_nonzero(), self.run)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        live_runs().remove(&self.run);
    }
}

fn live_runs() -> std::sync::MutexGuard<'static, BTreeSet<u64>> {
    LIVE_RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A killed process group whose leader is still to be reaped. It keeps its place in the bound on processes until then,
/// which is what bounds the queue.
pub(in crate::handlers) struct Remains {
    pub(in crate::handlers) leader: OwnedFd,
    pub(in crate::handlers) group: Pid,
    pub(in crate::handlers) _slot: Option<OwnedSemaphorePermit>,
    pub(in crate::handlers) mark: Option<Mark>,
}

/// Hands on a group that has been killed. Does not block.
pub(in crate::handlers) fn bury(remains: Remains) {
    let refused = match &*REAPER {
        Some(reaper) => reaper.send(Task::Bury(remains)).err().map(|refused| refused.0),
        None => Some(Task::Bury(remains)),
    };
    // Without a thread the wait is made here: its end has been brought about.
    if let Some(Task::Bury(remains)) = refused {
        reap(&remains);
    }
}

fn start() -> Option<Sender<Task>> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("gatehook-reaper".to_owned()).spawn(move || serve(&receiver));
    thread.inspect_err(|error| tracing::error!(%error, "the reaper thread could not be started")).ok().map(|_| sender)
}

fn serve(tasks: &Receiver<Task>) {
    let mut next_search = Instant::now();
    let mut search_is_due = false;
    loop {
        let wait = if search_is_due { next_search.saturating_duration_since(Instant::now()) } else { Duration::MAX };
        match tasks.recv_timeout(wait) {
            Ok(Task::Bury(remains)) => {
                search_is_due |= ADOPTING.load(Ordering::Acquire);
                reap(&remains);
            }
            Ok(Task::Settle(done)) => {
                while end_orphans() {}
                done();
            }
            Err(RecvTimeoutError::Timeout) => {
                search_is_due = end_orphans();
                next_search = Instant::now() + BETWEEN_SEARCHES;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Waits for the leader and, where they have become our children, for all of its group.
fn reap(remains: &Remains) {
    if remains.mark.is_some() {
        while waitid(WaitId::Pgid(Some(remains.group)), WaitIdOptions::EXITED).is_ok() {}
    } else {
        let _ = waitid(WaitId::PidFd(remains.leader.as_fd()), WaitIdOptions::EXITED);
    }
}

/// Kills and reaps adopted processes of runs that have ended; true where some were killed, whose children may follow.
fn end_orphans() -> bool {
    let Some(own_session) = session_of("self") else { return false };
    let Ok(table) = std::fs::read_dir("/proc") else { return false };
    let mut killed = false;
    for pid in table.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Pid::from_raw) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error: it is no child of ours. Our own session: this program started it itself.
        let Ok(exited) = waitid(WaitId::Pid(pid), look) else { continue };
        if session_of(pid.as_raw_nonzero()).is_none_or(|session| session == own_session) {
            continue;
        }
        if exited.is_none() {
            if !belongs_to_an_ended_run(pid) {
                continue;
            }
            let _ = kill_process(pid, Signal::KILL);
            killed = true;
        }
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
    }
    killed
}

/// The session of a process by the process table, where it is 0 if its leader is outside of this PID namespace:
/// `getsid` as a call cannot be asked, since a [`Pid`] is never 0.
fn session_of(process: impl fmt::Display) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let status = String::from_utf8_lossy(&status);
    // The name stands in parentheses and may hold any character; state, parent, group and session follow it.
    let (_, after_name) = status.rsplit_once(')')?;
    after_name.split_whitespace().nth(3)?.parse().ok()
}

fn belongs_to_an_ended_run(pid: Pid) -> bool {
    let path = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("environ");
    let Ok(environ) = std::fs::read(path) else { return false };
    let prefix = format!("{MARK_VARIABLE}={}-", getpid().as_raw_nonzero());
    environ
        .split(|&byte| byte == 0)
        .filter_map(|variable| std::str::from_utf8(variable).ok()?.strip_prefix(&prefix)?.parse::<u64>().ok())
        .any(|run| !live_runs().contains(&run))
}
