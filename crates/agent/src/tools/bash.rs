//! `bash`: a shell line, in a process group of its own, within a sandbox where the system has one.

mod excerpt;
mod guarded;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatehook_engine::process::{End, NoSandbox, Sandbox, Starter};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use self::excerpt::{Excerpt, Pieces};
use self::guarded::Guarded;
use super::arguments::{self, Count};
use super::builtin::{Sandboxing, spec};
use super::workspace::{Refused, Tried};
use super::{Calling, Scene, Tool, ToolErrorKind, ToolOutput, ToolSpec, Working};

/// Seconds that a line may take.
const TIMEOUT: u64 = 120;
const LONGEST: u64 = 600;
/// Bytes of a line.
const LINE: usize = 100 << 10;

/// What runs lines: the first that is there.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// What may be written beside the workspace, as far as it is there: devices that keep nothing, and what is temporary.
const WRITTEN: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/tmp",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default)]
    timeout: Option<Count>,
}

/// The tool.
pub(super) struct Bash {
    spec: ToolSpec,
    sandboxing: Sandboxing,
    /// How the last call's processes were started, and where: the next one's mostly are too.
    last: Mutex<Option<(Bounds, Starter)>>,
}

/// What processes may write.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bounds {
    workspace: Arc<Path>,
    write: Vec<PathBuf>,
}

impl Bash {
    pub(super) fn new(sandboxing: Sandboxing) -> Self {
        let bounds = match sandboxing {
            Sandboxing::Off => "",
            Sandboxing::Auto | Sandboxing::Required => " Files can be written in the workspace and /tmp only.",
        };
        let description = format!(
            "Runs a line in bash, in the workspace, with nothing on stdin, and gives what it writes and its exit code. \
             What it leaves running is ended with it.{bounds}"
        );
        let parameters = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The line, or several"},
                "timeout": {"type": "integer", "minimum": 1, "maximum": LONGEST, "description": "Seconds; 120 if left out"},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        Self { spec: spec("bash", &description, parameters), sandboxing, last: Mutex::default() }
    }

    async fn run(&self, call: Calling<'_>) -> Tried<ToolOutput> {
        let given: Arguments = arguments::read(call.arguments)?;
        let limit = Duration::from_secs(given.timeout.map_or(TIMEOUT, |count| count.0));
        let command = command(&given, limit, call.scene)?;
        let starter = self.starter(call.scene).await?;
        let workspace = Arc::clone(&call.scene.workspace);
        let guarded = aside(move || Guarded::look(&workspace)).await?;
        let (mut excerpt, mut pieces) = (Excerpt::default(), Pieces::default());
        let mut output = |bytes: &[u8]| {
            excerpt.add(bytes);
            if let Some(piece) = pieces.next(bytes) {
                (call.output)(&piece);
            }
        };
        let ran = starter.run(command, call.cancel, Instant::now() + limit, &mut output).await;
        if let Some(piece) = pieces.last() {
            (call.output)(&piece);
        }
        let restored = aside(move || guarded.restore()).await?;
        let end =
            ran.map_err(|error| Refused::new(ToolErrorKind::Other, format!("it could not be started: {error}")))?;
        Ok(put_back(told(excerpt, end, limit), &restored))
    }

    /// What starts the processes of `scene`.
    async fn starter(&self, scene: &Scene) -> Tried<Starter> {
        if self.sandboxing == Sandboxing::Off {
            return Ok(Starter::default());
        }
        let bounds = Bounds::of(scene);
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, starter)) = last().as_ref().filter(|(of, _)| *of == bounds) {
            return Ok(starter.clone());
        }
        let (of, is_required) = (bounds.clone(), self.sandboxing == Sandboxing::Required);
        let made = tokio::task::spawn_blocking(move || of.starter(is_required)).await;
        let none =
            |why: &dyn std::fmt::Display| Refused::new(ToolErrorKind::Other, format!("there is no sandbox: {why}"));
        let starter = made.map_err(|error| none(&error))?.map_err(|error| none(&error))?;
        *last() = Some((bounds, starter.clone()));
        Ok(starter)
    }
}

impl Bounds {
    fn of(scene: &Scene) -> Self {
        let temporary = scene.env.get("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let beside = WRITTEN.iter().map(PathBuf::from).chain(temporary);
        let write = scene.allowed.iter().chain(&*scene.shared).cloned().chain(beside).collect();
        Self { workspace: Arc::clone(&scene.workspace), write }
    }

    /// Blocks for a moment.
    fn starter(&self, is_required: bool) -> Result<Starter, NoSandbox> {
        let there = self.write.iter().filter(|path| path.exists()).map(|path| path.as_path());
        let write = std::iter::once(&*self.workspace).chain(there);
        let write = write.map(|path| path.to_string_lossy().into_owned()).collect();
        let sandbox = |required| Sandbox { no_network: false, write: Some(write), required };
        Starter::within(&sandbox(is_required), &self.workspace, "bash")
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        Box::pin(async move { self.run(call).await.unwrap_or_else(ToolOutput::from) })
    }
}

/// Does work that blocks on a thread that may.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Tried<T> {
    let failed = |error| Refused::new(ToolErrorKind::Other, format!("a thread has failed: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// Says which of the guard's files were put back.
fn put_back(mut output: ToolOutput, restored: &[PathBuf]) -> ToolOutput {
    if !restored.is_empty() {
        let paths: Vec<String> = restored.iter().map(|path| path.display().to_string()).collect();
        let note = format!("(not for tools to change, and put back: {})", paths.join(", "));
        output.text = format!("{}\n{note}", output.text.trim_end());
        output.error.get_or_insert(ToolErrorKind::Permission);
    }
    output
}

fn command(given: &Arguments, limit: Duration, scene: &Scene) -> Tried<Command> {
    let invalid = |why: String| Err(Refused::new(ToolErrorKind::InvalidInput, why));
    let line = &given.command;
    if line.trim().is_empty() || line.contains('\0') || line.len() > LINE {
        return invalid("`command` is empty, has a NUL, or is longer than 100 KiB".to_owned());
    }
    if !(1..=LONGEST).contains(&limit.as_secs()) {
        return invalid(format!("`timeout` is a number of seconds from 1 to {LONGEST}"));
    }
    let shell = SHELLS.iter().find(|path| Path::new(path).exists()).unwrap_or(&"/bin/sh");
    let mut command = Command::new(shell);
    command.args(["-c", line]).env_clear().envs(&*scene.env).current_dir(&scene.workspace);
    command.env("GATEHOOK_SESSION_ID", &*scene.session_id);
    Ok(command)
}

fn told(excerpt: Excerpt, end: End, limit: Duration) -> ToolOutput {
    let (note, error) = match end {
        End::Code(0) => (None, None),
        End::Code(code) => (Some(format!("(exit code {code})")), Some(ToolErrorKind::Other)),
        End::Signal => (Some("(ended by a signal)".to_owned()), Some(ToolErrorKind::Other)),
        End::Timeout => {
            let text = format!("(not done after {} s: it was ended, with all that it had started)", limit.as_secs());
            (Some(text), Some(ToolErrorKind::Timeout))
        }
        End::Cancelled => (Some("(cancelled: it was ended)".to_owned()), Some(ToolErrorKind::Cancelled)),
    };
    let mut text = excerpt.text();
    if text.is_empty() && note.is_none() {
        text.push_str("(no output)");
    }
    if let Some(note) = note {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    ToolOutput { text, error, ..ToolOutput::default() }
}
