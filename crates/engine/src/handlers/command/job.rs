//! Processes of a host's own, as an agent's shell: started, watched and ended as hooks' are, but what they write goes on
//! as it comes.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use gatehook_events::FailureKind;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::process::Process;
use super::{reaper, stopped};
use crate::definition::Sandbox;
use crate::handlers::confine::Spawner;

/// Jobs at a time. They may take minutes, so they take no hook's place.
const JOBS: usize = 32;

/// How long is waited for what a job left outside of its group.
const SETTLING: Duration = Duration::from_secs(1);

static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(JOBS)));

/// Starts processes: where it is called, or within a sandbox. A clone starts them within the same one.
#[derive(Clone, Default)]
pub struct Starter {
    sandbox: Option<Arc<Spawner>>,
}

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoSandbox(String);

/// How a job came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal that it did not get from here.
    Signal,
    /// Its deadline was over.
    Timeout,
    /// The caller gave up.
    Cancelled,
}

impl Starter {
    /// One whose processes, and all that they start, are within `sandbox` for ever. `dir` is where its relative paths
    /// begin, `name` whose it is, for the log. Blocks for a moment.
    pub fn within(sandbox: &Sandbox, dir: &Path, name: &str) -> Result<Self, NoSandbox> {
        let spawner = Spawner::start(sandbox, dir, name).map_err(|error| NoSandbox(error.message))?;
        Ok(Self { sandbox: Some(Arc::new(spawner)) })
    }

    /// Runs `command` in a process group of its own, with nothing on stdin, until its program has exited. What it writes
    /// to stdout and stderr goes to `output` in order; where a piece ends means nothing.
    ///
    /// Nothing of it is left then: its group is killed, at its deadline or on `cancel` after SIGTERM and 200 ms; where
    /// the program [adopts orphans](crate::process::adopt_orphans), also what has left the group. Cancel safe: dropped, it is
    /// ended without notice. An error says why it could not be started.
    pub async fn run(
        &self,
        mut command: Command,
        cancel: &CancellationToken,
        deadline: Instant,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> io::Result<End> {
        let mut stop = std::pin::pin!(stopped(cancel, deadline));
        let place = tokio::select! {
            biased;
            kind = &mut stop => return Ok(End::of(kind)),
            place = Arc::clone(&PLACES).acquire_owned() => place.map_err(io::Error::other)?,
        };
        command.process_group(0);
        let mut process = Process::spawn_joined(command, |command| self.start(command), place)?;
        let stopped = tokio::select! {
            biased;
            kind = &mut stop => Some(kind),
            () = process.pour(output) => None,
        };
        let end = match stopped {
            Some(kind) => {
                process.end().await;
                process.stdout.hand_on(output);
                End::of(kind)
            }
            None => match process.reap()? {
                -1 => End::Signal,
                code => End::Code(code),
            },
        };
        drop(process);
        reaper::settled(SETTLING).await;
        Ok(end)
    }

    fn start(&self, mut command: Command) -> io::Result<std::process::Child> {
        match &self.sandbox {
            Some(spawner) => spawner.spawn(command),
            None => command.spawn(),
        }
    }
}

impl End {
    fn of(kind: FailureKind) -> Self {
        if kind == FailureKind::Cancelled { Self::Cancelled } else { Self::Timeout }
    }
}

impl std::fmt::Debug for Starter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Starter").field("is_sandboxed", &self.sandbox.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    async fn run(line: &str, limit: Duration) -> (End, String) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdin(Stdio::piped());
        let mut said = Vec::new();
        let mut output = |piece: &[u8]| said.extend_from_slice(piece);
        let deadline = Instant::now() + limit;
        let end = Starter::default().run(command, &CancellationToken::new(), deadline, &mut output).await.unwrap();
        (end, String::from_utf8(said).unwrap())
    }

    #[tokio::test]
    async fn what_a_job_writes_comes_in_order_and_whole() {
        let minute = Duration::from_secs(60);
        let (end, said) = run("echo a; echo b >&2; echo c; cat; exit 3", minute).await;
        assert_eq!((end, said.as_str()), (End::Code(3), "a\nb\nc\n"));
        let (end, said) = run("head -c 3000000 /dev/zero | tr '\\0' x", minute).await;
        assert_eq!((end, said.len()), (End::Code(0), 3_000_000));
        assert_eq!(run("kill -9 $$", minute).await.0, End::Signal);
    }

    #[tokio::test]
    async fn a_job_ends_at_its_deadline_with_all_that_it_started() {
        let begin = Instant::now();
        let (end, said) =
            run("trap 'echo bye; exit 0' TERM; echo hi; sleep 60 & wait", Duration::from_millis(300)).await;
        assert_eq!(end, End::Timeout);
        assert_eq!(said, "hi\nbye\n");
        assert!(begin.elapsed() < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn what_waits_in_the_background_keeps_nobody_waiting() {
        let begin = Instant::now();
        assert_eq!(run("sleep 60 & echo done", Duration::from_secs(60)).await, (End::Code(0), "done\n".to_owned()));
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
