//! `audit_log`: one line of JSON for each event.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use gatehook_events::{Event, FailureKind, Input};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Arguments;
use crate::handler::{DefinitionError, Handler, HandlerError, HookCall, Reply, Run};
use crate::streaming::Streaming;
use crate::time;

struct AuditLog {
    file: Arc<File>,
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
    let file = open(&path).map_err(|error| {
        let message = format!("`audit_log` cannot append to {}: {error}", path.display());
        Arguments::wrong(message, "its folder must exist, and the file must be yours to write")
    })?;
    Ok(Arc::new(AuditLog { file: Arc::new(file) }))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
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
            let (event, input, file) = (call.event, call.input.clone(), self.file.clone());
            let written = tokio::task::spawn_blocking(move || append(&file, &line(event, &input)?)).await;
            written.map_err(|_| failed(io::Error::other("it panicked")))?.map_err(failed)?;
            Ok(Reply::Direct(None))
        })
    }
}

/// One write, so that lines of several processes do not mix.
fn append(mut file: &File, line: &[u8]) -> io::Result<()> {
    let written = file.write(line)?;
    if written == line.len() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::WriteZero, "a line was cut short")) }
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
