//! A program that a builtin runs, as `git`: a process group of its own, a deadline, an end of what it may write.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::process::{Process, TooMuchOutput};
use super::{PROCESS_WIDE, describe, not_started, program, stopped, tail};
use crate::handler::{HandlerError, HookCall};

/// Until when something may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until<'a> {
    /// The caller gives up.
    pub(crate) cancel: &'a CancellationToken,
    /// It must be done by then.
    pub(crate) deadline: Instant,
}

impl<'a> From<HookCall<'a>> for Until<'a> {
    fn from(call: HookCall<'a>) -> Self {
        Self { cancel: call.cancel, deadline: call.deadline }
    }
}

/// A program and the environment that it runs in.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    path: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
}

/// What a program has said.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) stdout: Bytes,
    pub(crate) stderr: String,
    /// -1 by a signal.
    pub(crate) exit_code: i32,
    /// It wrote more than it may, and was ended.
    pub(crate) cut: bool,
}

impl Tool {
    /// The program of this name on the `PATH` of `env`.
    pub(crate) fn find(name: &str, env: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self { path: program::search(name, env)?, env: env.clone() })
    }

    /// Runs it with an empty line on stdin. `limit`: bytes that it may write. Cancel safe: it leaves no process.
    pub(crate) async fn run<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        dir: &Path,
        until: Until<'_>,
        limit: usize,
    ) -> Result<Told, HandlerError> {
        let mut stop = std::pin::pin!(stopped(until.cancel, until.deadline));
        let slot = tokio::select! {
            biased;
            kind = &mut stop => return Err(HandlerError::new(kind, describe(kind))),
            slot = Arc::clone(&PROCESS_WIDE).acquire_owned() => slot.map_err(|_| not_started("no place for a process"))?,
        };
        let mut command = Command::new(&self.path);
        command.args(args).env_clear().envs(&self.env).current_dir(dir).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = Process::spawn(command, |mut command| command.spawn(), Bytes::new(), slot);
        let mut process = process.map_err(|error| not_started(&error.to_string()))?;
        process.stdout.limit = limit;
        let ran = tokio::select! {
            biased;
            kind = &mut stop => Err(kind),
            ran = process.run() => Ok(ran),
        };
        let cut = match ran {
            Ok(Ok(())) => false,
            Ok(Err(TooMuchOutput)) => true,
            Err(kind) => {
                process.end().await;
                return Err(HandlerError::new(kind, describe(kind)));
            }
        };
        let exit_code = if cut {
            process.end().await;
            -1
        } else {
            process.reap().map_err(|error| not_started(&format!("its exit code is lost: {error}")))?
        };
        process.stdout.discard_excess();
        let stderr = tail(&process.stderr.data);
        Ok(Told { stdout: std::mem::take(&mut process.stdout.data).freeze(), stderr, exit_code, cut })
    }
}
