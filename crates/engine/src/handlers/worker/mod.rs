//! Worker hooks: a process that lives on, reads each event as one line of JSON and answers each with one line.
//!
//! A worker is started with the first event, in a process group of its own, with the environment and working directory
//! of a command hook. What it answers is a JSON object as a command hook would print it; an empty line, `{}` and `null` are
//! no opinion. Answers come in the order of the events.
//!
//! Whatever breaks that order ends the worker, with notice and then by force, and the next event starts another one: a
//! missed deadline, a caller who gives up, an answer that cannot be read, that is over 1 MiB or that nobody asked for.
//! So a late answer is never taken for another event's. One that keeps breaking is started again after a pause that
//! grows to five seconds.
//!
//! `pool.rs` says which process gets an event, `process.rs` how one is asked, and `keeper.rs` what happens to processes
//! that nobody is asking: their stderr goes to the log, and their end is seen to. `living.rs` is the same for programs that are
//! no hooks.

pub(in crate::handlers) mod keeper;
pub(crate) mod living;
pub(in crate::handlers) mod pool;
pub(in crate::handlers) mod process;
mod stderr;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use gatehook_events::FailureKind;
use serde::de::IgnoredAny;

use self::pool::{Limits, Pool, Unreadable};
use self::process::Launch;
use super::command::environment;
use super::command::program::Program;
use super::confine::Launcher;
use crate::definition::{HandlerDefinition, HookDefinition};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};

/// Makes the handlers of `type: worker`. Each has processes of its own, which end with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorkerFactory;

impl HandlerFactory for WorkerFactory {
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let HandlerDefinition::Worker(worker) = &definition.handler else {
            return Err(DefinitionError { field: "type", message: "it is no worker".to_owned(), help: None });
        };
        let mut hook_env = environment::of_hook(definition, &env.env)?;
        let program = Program::find(&worker.command, definition.profile.spec().shell, env, &hook_env)?;
        let working_dir = environment::dir_of_hook(definition, env);
        let launch = Launch {
            launcher: Launcher::new(definition, program, &working_dir, &mut hook_env)?,
            env: hook_env,
            working_dir,
            name: definition.display_name().into(),
        };
        let limits = Limits {
            workers: worker.workers.get(),
            max_in_flight: worker.max_in_flight.get(),
            idle_timeout: worker.idle_timeout,
        };
        Ok(Arc::new(WorkerHandler { pool: Pool::new(launch, limits) }))
    }
}

/// One worker hook.
struct WorkerHandler {
    pool: Pool,
}

impl Handler for WorkerHandler {
    /// Cancel safe: dropped at any point, it ends the worker that it has asked.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(self.pool.run(call, read))
    }
}

/// One line alone, for fuzz targets; `None` where it cannot be read.
#[cfg(fuzzing)]
pub fn read_line(line: Bytes) -> Option<Result<Reply, HandlerError>> {
    read(line).ok()
}

/// One line as a command hook would print it. Plain text is none: it may as well be a stray message.
fn read(line: Bytes) -> Result<Result<Reply, HandlerError>, Unreadable> {
    let text = line.trim_ascii();
    let stdout = match text {
        b"" | b"null" => Bytes::new(),
        [b'{', ..] if serde_json::from_slice::<IgnoredAny>(text).is_ok() => line,
        _ => return Err(Unreadable { kind: FailureKind::MalformedJson, what: "its answer is no JSON object" }),
    };
    Ok(Ok(Reply::Process { stdout, stderr: String::new(), exit_code: 0 }))
}
