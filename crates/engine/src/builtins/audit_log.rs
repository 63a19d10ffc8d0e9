//! `audit_log`: one line of JSON for each event.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gatehook_events::{Event, FailureKind, Input};
use rustix::fs::{Access, access};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Arguments;
use crate::handler::{DefinitionError, Handler, HandlerError, HookCall, Reply, Run};
use crate::streaming::Streaming;
use crate::time;

struct AuditLog {
    log: Arc<Log>,
}

/// The file, which the first event opens: to look at a configuration leaves nothing behind.
struct Log {
    path: PathBuf,
    file: OnceLock<File>,
}

/// One line. Fields that the event does not have are absent.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    /// Of what [`seen`] names, lower-case hex.
    sha256: String,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let [path] = arguments.args else {
        return Err(Arguments::wrong(
            "`audit_log` takes one argument, a file",
            "as in `args: [/var/log/gatehook.jsonl]`",
        ));
    };
    let path = arguments.env.working_dir.join(path);
    can_append(&path).map_err(|error| {
        let message = format!("`audit_log` cannot append to {}: {error}", path.display());
        Arguments::wrong(message, "its folder must exist, and the file must be yours to write")
    })?;
    Ok(Arc::new(AuditLog { log: Arc::new(Log { path, file: OnceLock::new() }) }))
}

/// Whether it could be opened, as far as that is known without it.
fn can_append(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            Ok(access(folder.join("."), Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}

impl Log {
    /// One write, so that lines of several processes do not mix.
    fn append(&self, line: &[u8]) -> io::Result<()> {
        let written = self.file()?.write(line)?;
        match written == line.len() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::WriteZero, "a line was cut short")),
        }
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        Ok(self.file.get_or_init(|| file))
    }
}

impl Handler for AuditLog {
    fn streams(&self) -> Streaming {
        Streaming::Observe
    }

    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            let failed = |error: io::Error| {
                HandlerError::new(FailureKind::HandlerError, format!("the audit log cannot be written: {error}"))
            };
            let (event, input, log) = (call.event, call.input.clone(), self.log.clone());
            let written = tokio::task::spawn_blocking(move || log.append(&line(event, &input)?)).await;
            written.map_err(|_| failed(io::Error::other("it panicked")))?.map_err(failed)?;
            Ok(Reply::Direct(None))
        })
    }
}

fn line(event: Event, input: &Input) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line {
        time: time::now(),
        event: event.public_name(),
        session_id: input.session_id.as_deref(),
        request_id: input.request_id.as_deref(),
        route: input.route.as_deref(),
        model: input.model_id.as_deref(),
        tool_name: input.tool_name.as_deref(),
        sha256: seen(event, input)?,
    })?;
    line.push(b'\n');
    Ok(line)
}

/// SHA-256 of the compact JSON of what the event is about: the conversation before a model call, the answer after it,
/// a tool's arguments or response; of the whole payload elsewhere.
fn seen(event: Event, input: &Input) -> io::Result<String> {
    let mut hash = Hash(Sha256::new());
    match event {
        Event::PreInference | Event::BeforeLlmCall => serde_json::to_writer(&mut hash, &input.messages),
        Event::PostInference => {
            serde_json::to_writer(&mut hash, &(&input.output_text, &input.output_thinking, &input.tool_calls))
        }
        Event::ToolInputTransform | Event::ToolGuard | Event::PreToolUse | Event::PermissionRequest => {
            serde_json::to_writer(&mut hash, &input.tool_input)
        }
        Event::ToolResponseTransform | Event::PostToolUse => serde_json::to_writer(&mut hash, &input.tool_response),
        _ => serde_json::to_writer(&mut hash, input),
    }?;
    Ok(hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

struct Hash(Sha256);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
