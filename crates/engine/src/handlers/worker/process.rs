//! One process that answers lines with lines.
//!
//! Whoever asks writes the line and reads the answer in one future: no task stands between, so that an answer costs one
//! wake-up. The pipes belong to the runtime that asked last; another one takes them over.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::buf::Chain;
use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use futures_util::poll;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime::{Handle, Id};
use tokio::sync::Mutex;

use super::super::confine::Launcher;
use super::keeper::Group;

/// Bytes of an answer.
pub(super) const REPLY_LIMIT: usize = 1 << 20;

const READ: usize = 8 << 10;

/// How a process is started.
pub(in crate::handlers) struct Launch {
    pub(in crate::handlers) launcher: Launcher,
    pub(in crate::handlers) env: BTreeMap<String, String>,
    pub(in crate::handlers) working_dir: PathBuf,
    /// The hook's, for the log.
    pub(in crate::handlers) name: Arc<str>,
}

/// A running process.
pub(super) struct Worker {
    pub(super) group: Arc<Group>,
    stdin: Mutex<Stdin>,
    stdout: Mutex<Stdout>,
    /// Events that were written and not answered.
    unanswered: AtomicUsize,
    /// An answer would be taken for another event's.
    spoiled: AtomicBool,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// It had ended, or was out of order, before anything of the event was written: another process may be asked.
    Unasked,
    /// It has ended, or another event has put it out of order.
    Ended,
    TooLarge,
    /// More came than was asked for.
    Excess,
}

impl Worker {
    /// Starts a process. Its stderr is the keeper's from now on, and so is the process once `self.group` is dropped.
    pub(super) fn start(launch: &Launch) -> io::Result<Self> {
        let program = &launch.launcher.program;
        let mut command = Command::new(&program.path);
        command
            .args(&program.args)
            .env_clear()
            .envs(&launch.env)
            .current_dir(&launch.working_dir)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let (group, mut child) =
            Group::spawn(command, |command| launch.launcher.spawn(command), Arc::clone(&launch.name))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        // From here on a failure drops the group, which ends it.
        let (stdin, stdout) = pipes.ok_or_else(missing)?;
        Ok(Self {
            group,
            stdin: Mutex::new(Stdin::new(stdin.into())?),
            stdout: Mutex::new(Stdout::new(stdout.into())?),
            unanswered: AtomicUsize::new(0),
            spoiled: AtomicBool::new(false),
        })
    }

    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled.load(Ordering::Acquire)
    }

    /// Writes a line and reads the next one. Dropped before that is done, it leaves the process out of order, which
    /// [`is_spoiled`](Self::is_spoiled) says and whoever waits behind it learns.
    pub(super) async fn ask(&self, line: Bytes) -> Result<Bytes, Broken> {
        let mut stdin = self.stdin.lock().await;
        // Its first look takes its place in the queue of readers, while no other writer can come between, and sees
        // whether something is there that nobody has asked for.
        let mut reading = pin!(self.answer());
        if self.is_spoiled() || poll!(reading.as_mut()).is_ready() {
            self.spoiled.store(true, Ordering::Release);
            return Err(Broken::Unasked);
        }
        // Dropped before `reading` is: who reads next must know.
        let mut asked = Asked::of(self);
        let mut early = None;
        {
            let mut writing = pin!(stdin.write(line));
            // It may answer, or print, before it has read all of the line.
            tokio::select! {
                biased;
                written = &mut writing => written?,
                answer = &mut reading => {
                    early = Some(answer?);
                    writing.await?;
                }
            }
        }
        drop(stdin);
        let answer = match early {
            Some(answer) => answer,
            None => reading.await?,
        };
        asked.is_answered = true;
        Ok(answer)
    }

    async fn answer(&self) -> Result<Bytes, Broken> {
        let mut stdout = self.stdout.lock().await;
        if self.is_spoiled() {
            return Err(Broken::Ended);
        }
        let line = stdout.line().await?;
        // What follows at once belongs to the next event that waits, if one does.
        if !stdout.data.is_empty() && self.unanswered.load(Ordering::Acquire) < 2 {
            return Err(Broken::Excess);
        }
        Ok(line)
    }
}

/// An event that was written, or part of it.
struct Asked<'a> {
    worker: &'a Worker,
    is_answered: bool,
}

impl<'a> Asked<'a> {
    fn of(worker: &'a Worker) -> Self {
        worker.unanswered.fetch_add(1, Ordering::AcqRel);
        Self { worker, is_answered: false }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.worker.unanswered.fetch_sub(1, Ordering::AcqRel);
        if !self.is_answered {
            self.worker.spoiled.store(true, Ordering::Release);
        }
    }
}

/// Where lines are written.
struct Stdin {
    /// `None` once it is closed.
    pipe: Option<OwnedFd>,
}

impl Stdin {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Self { pipe: Some(pipe) })
    }

    /// Writes all of a line. What the pipe takes at once costs no registration with the runtime.
    async fn write(&mut self, line: Bytes) -> Result<(), Broken> {
        let pipe = self.pipe.take().ok_or(Broken::Ended)?;
        let mut rest = line.chain(Bytes::from_static(b"\n"));
        let whole = rest.remaining();
        loop {
            match write_some(&mut rest, |slices| rustix::io::writev(&pipe, slices)) {
                Ok(()) if rest.has_remaining() => {}
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let sender = Sender::from_owned_fd_unchecked(pipe).map_err(|_| Broken::Ended)?;
                    self.pipe = Some(write_slowly(sender, rest).await.map_err(|_| Broken::Ended)?);
                    return Ok(());
                }
                Err(_nobody_reads) if rest.remaining() == whole => return Err(Broken::Unasked),
                Err(_nobody_reads) => return Err(Broken::Ended),
            }
        }
        self.pipe = Some(pipe);
        Ok(())
    }
}

type Line = Chain<Bytes, Bytes>;

fn write_some<E>(rest: &mut Line, write: impl FnOnce(&[IoSlice<'_>]) -> Result<usize, E>) -> Result<(), E> {
    let mut slices = [IoSlice::new(&[]); 2];
    let count = rest.chunks_vectored(&mut slices);
    let written = write(slices.get(..count).unwrap_or_default())?;
    rest.advance(written);
    Ok(())
}

async fn write_slowly(sender: Sender, mut rest: Line) -> io::Result<OwnedFd> {
    while rest.has_remaining() {
        sender.writable().await?;
        match write_some(&mut rest, |slices| sender.try_write_vectored(slices)) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            written => written?,
        }
    }
    sender.into_nonblocking_fd()
}

/// Where answers are read.
struct Stdout {
    /// `None` once it is closed.
    pipe: Option<Receiver>,
    runtime: Id,
    data: BytesMut,
}

impl Stdout {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let pipe = Some(Receiver::from_owned_fd_unchecked(pipe)?);
        Ok(Self { pipe, runtime: Handle::current().id(), data: BytesMut::new() })
    }

    /// The next line, without its end. Cancel safe: what was read stays.
    async fn line(&mut self) -> Result<Bytes, Broken> {
        let mut searched = 0;
        loop {
            let new = self.data.get(searched..).unwrap_or_default();
            if let Some(end) = new.iter().position(|&byte| byte == b'\n') {
                let mut line = self.data.split_to(searched + end + 1);
                line.truncate(searched + end);
                return if line.len() > REPLY_LIMIT { Err(Broken::TooLarge) } else { Ok(line.freeze()) };
            }
            searched = self.data.len();
            if searched > REPLY_LIMIT {
                return Err(Broken::TooLarge);
            }
            self.fill().await?;
        }
    }

    /// Reads what is there, at least one byte.
    async fn fill(&mut self) -> Result<(), Broken> {
        if self.move_here().map_err(|_| Broken::Ended)? {
            return Ok(());
        }
        self.data.reserve(READ);
        let Some(pipe) = &self.pipe else { return Err(Broken::Ended) };
        loop {
            match pipe.try_read_buf(&mut (&mut self.data).limit(REPLY_LIMIT)) {
                Ok(0) => break,
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pipe.readable().await.map_err(|_| Broken::Ended)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.pipe = None;
        Err(Broken::Ended)
    }

    /// Registers the pipe with the runtime that this runs on. A registration learns what is there only when the runtime
    /// looks, so a first look is taken here; true where something was there.
    fn move_here(&mut self) -> io::Result<bool> {
        let here = Handle::current().id();
        if here == self.runtime {
            return Ok(false);
        }
        let Some(pipe) = self.pipe.take() else { return Ok(false) };
        let pipe = pipe.into_nonblocking_fd()?;
        let mut first = [0; 1024];
        let read = match rustix::io::read(&pipe, &mut first) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        self.data.extend_from_slice(first.get(..read).unwrap_or_default());
        self.pipe = Some(Receiver::from_owned_fd_unchecked(pipe)?);
        self.runtime = here;
        Ok(read > 0)
    }
}
