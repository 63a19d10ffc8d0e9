//! Command hooks: a process for each event, its payload on stdin, its answer on stdout and in its exit code.
//!
//! A command runs in a process group of its own, and nothing of it outlives its run: the group is killed when its
//! leader has exited, after SIGTERM and 200 ms at its deadline or when the caller gives up, and at once when nobody
//! waits for it any more. [`adopt_orphans`] widens that to processes that leave the group. All of this is done by this
//! process: hooks that run while it is itself ended by SIGKILL lose their pipes and live on.
//!
//! Starting never forks this process: programs are resolved when the hook is loaded, and nothing runs between fork and
//! exec, so that `posix_spawn` serves, whose cost does not grow with the parent's memory.

pub(crate) mod environment;
pub(crate) mod job;
mod process;
pub(super) mod program;
pub(super) mod reaper;
mod streams;
#[cfg(test)]
mod tests;
pub(crate) mod tool;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};

use bytes::BytesMut;
use gatehook_events::FailureKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use self::environment::working_dir;
use self::process::{Process, TooMuchOutput};
use self::program::Program;
pub use self::reaper::{adopt_orphans, end_leftovers};
use super::confine::Launcher;
use super::stopped;
use crate::definition::{HandlerDefinition, HookDefinition};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};

/// Child processes at a time, for each processor.
const PROCESSES_PER_CPU: usize = 4;

/// Bytes of stderr that go with a failure: the last ones.
const STDERR_TAIL: usize = 64 << 10;

static PROCESS_WIDE: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Arc::new(Semaphore::new(PROCESSES_PER_CPU * cpus))
});

/// Makes the handlers of `type: command`.
///
/// All factories made by [`Default`] share one bound on child processes, four for each processor. Waiting for a place
/// counts against the hook's deadline.
#[derive(Debug, Clone)]
pub struct CommandFactory {
    slots: Arc<Semaphore>,
}

impl Default for CommandFactory {
    fn default() -> Self {
        Self { slots: Arc::clone(&PROCESS_WIDE) }
    }
}

impl CommandFactory {
    /// A factory whose handlers have a bound of their own: at most `processes` at a time.
    pub fn bounded(processes: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(processes)) }
    }
}

impl HandlerFactory for CommandFactory {
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let HandlerDefinition::Command(command) = &definition.handler else {
            return Err(DefinitionError { field: "type", message: "it is no command hook".to_owned(), help: None });
        };
        let mut hook_env = environment::of_hook(definition, &env.env)?;
        let program = Program::find(command, definition.profile.spec().shell, env, &hook_env)?;
        let working_dir = environment::dir_of_hook(definition, env);
        let launcher = Launcher::new(definition, program, &working_dir, &mut hook_env)?;
        let (own, slots) = (definition.env.clone(), Arc::clone(&self.slots));
        Ok(Arc::new(CommandHandler { launcher, env: hook_env, own, working_dir, slots }))
    }
}

/// One command hook, ready to start.
struct CommandHandler {
    launcher: Launcher,
    env: BTreeMap<String, String>,
    /// Variables of its definition, which stand before those of its contract.
    own: BTreeMap<String, String>,
    working_dir: PathBuf,
    slots: Arc<Semaphore>,
}

impl Handler for CommandHandler {
    /// Cancel safe: dropped at any point, it leaves no process behind.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(self.run_once(call))
    }
}

impl CommandHandler {
    async fn run_once(&self, call: HookCall<'_>) -> Result<Reply, HandlerError> {
        let mut stop = std::pin::pin!(stopped(call.cancel, call.deadline));
        let slot = tokio::select! {
            biased;
            kind = &mut stop => return Err(HandlerError::new(kind, describe(kind))),
            slot = Arc::clone(&self.slots).acquire_owned() => slot.map_err(|_| not_started("no place for a process"))?,
        };
        let mut process = self.start(call, slot)?;
        let failure = tokio::select! {
            biased;
            kind = &mut stop => kind,
            ran = process.run() => match ran {
                Ok(()) => return reply(process),
                Err(TooMuchOutput) => FailureKind::OutputTooLarge,
            },
        };
        process.end().await;
        let stderr = tail(&process.stderr.data);
        Err(HandlerError { kind: failure, message: describe(failure).to_owned(), stderr })
    }

    fn start(&self, call: HookCall<'_>, slot: OwnedSemaphorePermit) -> Result<Process, HandlerError> {
        let line = call.payload.line(call.input)?;
        let program = &self.launcher.program;
        let mut command = Command::new(&program.path);
        command
            .args(&program.args)
            .env_clear()
            .envs(&self.env)
            .envs(call.payload.environment(call.input))
            .envs(&self.own)
            .current_dir(&self.working_dir)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Process::spawn(command, |command| self.launcher.spawn(command), line, slot).map_err(|error| {
            if self.working_dir.is_dir() {
                not_started(&error.to_string())
            } else {
                not_started(&format!("its working directory {} does not exist", self.working_dir.display()))
            }
        })
    }
}

fn reply(mut process: Process) -> Result<Reply, HandlerError> {
    let exit_code = process.reap().map_err(|error| {
        // Who ignores SIGCHLD learns no exit code, and an unknown one is no consent.
        HandlerError::new(FailureKind::HandlerError, format!("its exit code is lost: {error}"))
    })?;
    let stderr = String::from_utf8_lossy(&process.stderr.data).into_owned();
    Ok(Reply::Process { stdout: std::mem::take(&mut process.stdout.data).freeze(), stderr, exit_code })
}

pub(crate) fn describe(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Cancelled => "the caller gave up",
        FailureKind::OutputTooLarge => "it wrote more than 1 MiB",
        _ => "it did not answer in time",
    }
}

fn not_started(cause: &str) -> HandlerError {
    HandlerError::new(FailureKind::SpawnFailed, format!("it could not be started: {cause}"))
}

fn tail(stderr: &BytesMut) -> String {
    let start = stderr.len().saturating_sub(STDERR_TAIL);
    String::from_utf8_lossy(stderr.get(start..).unwrap_or_default()).into_owned()
}
