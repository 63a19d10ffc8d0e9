//! A server that is a program: JSON-RPC messages on standard input and output, a line each.
//! <https://modelcontextprotocol.io/specification/2025-06-18/basic/transports>

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatehook_engine::definition::EnvPolicy;
use gatehook_engine::process::{Living, Pipes, inherited};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::Mutex;

/// Bytes of a message. A longer line is passed over.
const MAX_LINE: usize = 16 << 20;
/// Lines that are no messages, one after another, after which a server is given up.
const MAX_GARBAGE: usize = 1000;
/// Messages that wait to be read by the server, after which it is given up: it asks much, and reads nothing.
const MAX_WAITING: usize = 256;

/// How a program is started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch<'a> {
    pub(super) name: &'a str,
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) env_policy: &'a EnvPolicy,
    pub(super) working_dir: Option<&'a str>,
    /// Where agents work.
    pub(super) workspace: &'a Path,
    /// What it may inherit.
    pub(super) host: &'a BTreeMap<String, String>,
}

impl Launch<'_> {
    /// Starts it. Blocks for as long as a start takes; must be called on a runtime.
    pub(super) fn start(self) -> io::Result<(Living, Pipe)> {
        let folder = self.working_dir.map_or_else(|| self.workspace.to_owned(), |dir| self.workspace.join(dir));
        let mut env = inherited(self.env_policy, self.host);
        env.extend(self.env.clone());
        let program = match self.command.contains('/') {
            true => self.workspace.join(self.command),
            false => on_path(self.command, &env)?,
        };
        let mut command = Command::new(program);
        command.args(self.args).env_clear().envs(&env).current_dir(folder);
        let (living, Pipes { stdin, stdout }) = Living::start(command, self.name)?;
        let lines = Lines::new(Receiver::from_owned_fd_unchecked(stdout)?, Sender::from_owned_fd_unchecked(stdin)?);
        Ok((living, lines))
    }
}

/// The first program of this name. An empty entry of `PATH` means the working directory to a shell; a server is not
/// looked up there.
fn on_path(name: &str, env: &BTreeMap<String, String>) -> io::Result<std::path::PathBuf> {
    let folders = env.get("PATH").map(String::as_str).unwrap_or_default();
    let folders = std::env::split_paths(folders).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join(name)).find(|program| program.is_file());
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("`{name}` is nowhere on PATH")))
}

/// The pipes of a program.
pub(super) type Pipe = Lines<Receiver, Sender>;

/// Messages as lines.
pub(super) struct Lines<R, W> {
    reader: BufReader<R>,
    /// What was read of a line that has not ended.
    begun: Vec<u8>,
    /// The line is too long, and passed over to its end.
    passes_over: bool,
    garbage: usize,
    waiting: Arc<AtomicUsize>,
    writer: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Lines<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            begun: Vec::new(),
            passes_over: false,
            garbage: 0,
            waiting: Arc::default(),
            writer: Arc::new(Mutex::new(Some(writer))),
        }
    }

    /// The next line; `None` at the end, and where the server is given up. Cancel safe.
    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let available = self.reader.fill_buf().await.ok().filter(|available| !available.is_empty())?;
            let end = available.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let is_too_long = self.begun.len() + taken > MAX_LINE;
            if !self.passes_over && !is_too_long {
                self.begun.extend_from_slice(available.get(..taken).unwrap_or_default());
            }
            self.reader.consume(taken);
            if is_too_long && !self.passes_over {
                tracing::warn!("an MCP server wrote more than {MAX_LINE} bytes in one line, which is passed over");
                self.begun = Vec::new();
                self.passes_over = true;
                self.garbage += 1;
            }
            if end.is_some() {
                let was_passed_over = std::mem::take(&mut self.passes_over);
                if !was_passed_over {
                    return Some(std::mem::take(&mut self.begun));
                }
            }
        }
    }
}

/// Counts a message that waits.
struct Waits(Arc<AtomicUsize>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waits = Waits(Arc::clone(&self.waiting));
        async move {
            let _waits = waits;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            // Dropped in the middle of a line, the pipe is of no more use.
            let mut pipe = writer.take().ok_or(io::ErrorKind::NotConnected)?;
            pipe.write_all(&line).await?;
            pipe.flush().await?;
            *writer = Some(pipe);
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if self.garbage > MAX_GARBAGE || self.waiting.load(Ordering::Relaxed) > MAX_WAITING {
                return None;
            }
            let line = self.line().await?;
            if line.trim_ascii().is_empty() {
                self.garbage += 1;
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(message) => {
                    self.garbage = 0;
                    return Some(message);
                }
                Err(error) => {
                    tracing::debug!(%error, "an MCP server wrote what is no message");
                    self.garbage += 1;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A server ends when nobody speaks with it any more.
        drop(self.writer.lock().await.take());
        Ok(())
    }
}
