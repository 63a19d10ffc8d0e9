//! One thread for the processes that live on: it reads their stderr, ends those that stand idle, and sees to the end of
//! all.
//!
//! A thread and not a task, because workers outlive the runtime that asked them last, and nobody waits for any of this.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};

use super::stderr::Stderr;
use crate::handlers::command::reaper::{self, Mark, Remains};

/// How long a process that is told to end may take to do so.
const GRACE: Duration = Duration::from_millis(200);

static KEEPER: LazyLock<Option<Keeper>> = LazyLock::new(start);

/// A process group, from its start until nothing of it is left. Its leader stays unreaped until the keeper has killed
/// the rest, so that the group's number means no other group.
pub(super) struct Group {
    name: Arc<str>,
    pid: Pid,
    pidfd: OwnedFd,
    /// `None` once it is ended and handed on.
    mark: Mutex<Option<Option<Mark>>>,
    stderr: Mutex<Stderr>,
}

/// What has processes that may stand idle.
pub(super) trait Idle: Send + Sync {
    /// Ends those that have stood idle for too long; says when to come again.
    fn end_idle(&self, now: Instant) -> Option<Instant>;
}

impl Group {
    /// Starts a command that has three pipes and a group of its own, by `spawn`.
    pub(super) fn spawn(
        mut command: Command,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
        name: Arc<str>,
    ) -> io::Result<(Arc<Self>, Child)> {
        let mark = reaper::mark();
        if let Some(mark) = &mark {
            command.env(reaper::MARK_VARIABLE, mark.to_string());
        }
        let mut child = spawn(command)?;
        match Self::attach(&mut child, mark, name) {
            Ok(group) => Ok((group, child)),
            Err(error) => {
                if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn attach(child: &mut Child, mark: Option<Mark>, name: Arc<str>) -> io::Result<Arc<Self>> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let keeper = KEEPER.as_ref().ok_or_else(|| io::Error::other("there is no thread to look after it"))?;
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or_else(missing)?;
        let stderr = Mutex::new(Stderr::new(child.stderr.take().ok_or_else(missing)?.into())?);
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        let group = Arc::new(Self { name, pid, pidfd, mark: Mutex::new(Some(mark)), stderr });
        keeper.tell(Task::Watch(Arc::clone(&group)));
        Ok(group)
    }

    /// Ends the group: SIGTERM now (SIGCONT for what is stopped), SIGKILL after the grace period. Does not wait.
    pub(super) fn end(self: &Arc<Self>) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        match &*KEEPER {
            Some(keeper) => keeper.tell(Task::End(Arc::clone(self))),
            None => self.signal(Signal::KILL),
        }
    }

    /// What it has written to stderr of late.
    pub(super) fn last_words(&self) -> String {
        // The keeper may not have seen it yet.
        self.read_stderr();
        locked(&self.stderr).tail()
    }

    /// What it has written so far belongs to no failure. Does not wait for the keeper.
    pub(super) fn forget_stderr(&self) {
        if let Ok(mut stderr) = self.stderr.try_lock() {
            stderr.forget();
        }
    }

    fn read_stderr(&self) {
        let lines = locked(&self.stderr).read(Instant::now());
        for line in lines {
            tracing::info!(hook = %self.name, pid = self.pid.as_raw_nonzero(), "{line}");
        }
    }

    fn signal(&self, signal: Signal) {
        if locked(&self.mark).is_some() {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Kills what is left of the group and hands it on. The leader must have exited or been killed.
    fn bury(&self) {
        self.signal(Signal::KILL);
        self.read_stderr();
        let Some(mark) = locked(&self.mark).take() else { return };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), look).ok().flatten();
        let (code, signal) = status.map_or((None, None), |it| (it.exit_status(), it.terminating_signal()));
        tracing::debug!(hook = %self.name, pid = self.pid.as_raw_nonzero(), code, signal, "a process has ended");
        match self.pidfd.try_clone() {
            Ok(leader) => reaper::bury(Remains { leader, group: self.pid, _slot: None, mark }),
            // It is dead: this does not wait.
            Err(_) => drop(waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)),
        }
    }
}

/// Calls `idle` back until it has nothing to end any more.
pub(super) fn watch_idle(idle: Weak<dyn Idle>) {
    if let Some(keeper) = &*KEEPER {
        keeper.tell(Task::Idle(idle));
    }
}

/// Ends every process, and waits until they are gone, but no longer than `patience`. Blocks.
pub(in crate::handlers) fn end_all(patience: Duration) {
    let (done, gone) = mpsc::channel();
    if let Some(keeper) = LazyLock::get(&KEEPER).and_then(Option::as_ref) {
        keeper.tell(Task::EndAll(done));
        let _ = gone.recv_timeout(patience);
    }
}

struct Keeper {
    tasks: Sender<Task>,
    wake: Arc<OwnedFd>,
}

enum Task {
    Watch(Arc<Group>),
    End(Arc<Group>),
    Idle(Weak<dyn Idle>),
    EndAll(Sender<()>),
}

impl Keeper {
    fn tell(&self, task: Task) {
        // The thread ends with the process alone.
        if self.tasks.send(task).is_ok() {
            let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        }
    }
}

fn start() -> Option<Keeper> {
    let error = |error: io::Error| tracing::error!(%error, "no worker can be looked after");
    let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|errno| error(errno.into())).ok()?;
    let (wake, (tasks, inbox)) = (Arc::new(wake), mpsc::channel());
    let mut thread = Thread { inbox, wake: Arc::clone(&wake), kept: Vec::new(), idle: Vec::new(), waiting: Vec::new() };
    let run = move || {
        loop {
            thread.turn();
        }
    };
    let spawned = std::thread::Builder::new().name("gatehook-keeper".to_owned()).spawn(run);
    spawned.map_err(error).ok().map(|_| Keeper { tasks, wake })
}

struct Thread {
    inbox: Receiver<Task>,
    wake: Arc<OwnedFd>,
    kept: Vec<Kept>,
    idle: Vec<(Option<Instant>, Weak<dyn Idle>)>,
    /// Who waits until nothing is left.
    waiting: Vec<Sender<()>>,
}

struct Kept {
    group: Arc<Group>,
    /// When it is killed.
    end: Option<Instant>,
}

impl Thread {
    fn turn(&mut self) {
        self.wait();
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        while let Ok(task) = self.inbox.try_recv() {
            self.take(task);
        }
        let now = Instant::now();
        self.idle.retain_mut(|(due, idle)| {
            if due.is_none_or(|due| due <= now) {
                *due = idle.upgrade().and_then(|idle| idle.end_idle(now));
            }
            due.is_some()
        });
        self.kept.retain_mut(|kept| {
            kept.group.read_stderr();
            if has_exited(&kept.group) {
                kept.group.bury();
                return false;
            }
            if kept.end.is_some_and(|end| end <= now) {
                kept.group.signal(Signal::KILL);
                // What hangs in the kernel is the reaper's.
                kept.group.bury();
                return false;
            }
            true
        });
        if self.kept.is_empty() {
            self.waiting.clear();
        }
    }

    fn take(&mut self, task: Task) {
        let end = Instant::now() + GRACE;
        match task {
            Task::Watch(group) => self.kept.push(Kept { group, end: None }),
            Task::End(group) => {
                if let Some(kept) = self.kept.iter_mut().find(|kept| Arc::ptr_eq(&kept.group, &group)) {
                    kept.end.get_or_insert(end);
                }
            }
            Task::Idle(idle) => self.idle.push((None, idle)),
            Task::EndAll(done) => {
                for kept in self.kept.iter_mut().filter(|kept| kept.end.is_none()) {
                    kept.group.signal(Signal::TERM);
                    kept.group.signal(Signal::CONT);
                    kept.end = Some(end);
                }
                self.waiting.push(done);
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) {
        let dues = self.kept.iter().filter_map(|kept| kept.end).chain(self.idle.iter().filter_map(|(due, _)| *due));
        let timeout = dues.min().map(|due| due.saturating_duration_since(Instant::now()));
        // Rounded up: a wake-up before the time would be one for nothing.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout + Duration::from_micros(1)).ok());
        let stderrs: Vec<_> = self.kept.iter().filter_map(|kept| locked(&kept.group.stderr).pipe()).collect();
        let processes = self.kept.iter().map(|kept| &kept.group.pidfd);
        let mut fds: Vec<_> = std::iter::once(&*self.wake)
            .chain(processes)
            .chain(stderrs.iter().map(|pipe| &**pipe))
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        // An error is a signal, or a lack of memory: the next turn asks again.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

fn has_exited(group: &Group) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::PidFd(group.pidfd.as_fd()), look), Ok(None))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
