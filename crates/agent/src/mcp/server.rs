//! One server over a session: started when it is needed, started again when it has ended, but not all the time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use gatehook_engine::client::{Client, Reach};
use gatehook_engine::text::plain;
use rmcp::model::CallToolResult;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::connection::{Connection, Failure, MAX_TOOLS};
use super::http::Http;
use super::program::Launch;
use super::tool::{self, Remote};
use super::{Reached, ServerDefinition};

/// The first pause of a server that keeps ending, and the longest.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A server that says several times at once that its tools are others is asked once.
const SETTLING: Duration = Duration::from_millis(100);
/// Characters of what a program said last that go with a failure.
const LAST_WORDS: usize = 500;

/// What all servers of a session share.
#[derive(Clone)]
pub struct Host {
    /// Where agents work.
    pub workspace: Arc<Path>,
    /// The environment that programs may inherit.
    pub env: Arc<BTreeMap<String, String>>,
    /// Is told what the person should know: a server that is not there, or has ended.
    pub notices: Arc<dyn Fn(String) + Send + Sync>,
}

/// A server, whether it runs or not.
pub(super) struct Server {
    pub(super) definition: ServerDefinition,
    host: Host,
    state: Mutex<State>,
    tools: RwLock<Arc<[Arc<Remote>]>>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// How often it has ended, or not begun, since it last answered a call.
    failures: u32,
    /// When it may be started again.
    pause_ends: Option<Instant>,
    /// Why it is not there.
    why: String,
}

struct Running {
    connection: Arc<Connection>,
    /// Asks for the tools again when they have changed.
    _listening: AbortOnDropHandle<()>,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallError {
    /// The server is not there, or went away.
    Gone(String),
    /// It took too long.
    Timeout(Duration),
    /// The caller gave up.
    Cancelled,
    /// It refused, or answered what cannot be understood.
    Failed(String),
}

impl Server {
    pub(super) fn new(definition: ServerDefinition, host: Host) -> Self {
        Self { definition, host, state: Mutex::default(), tools: RwLock::new(Arc::new([])) }
    }

    /// Its tools, as it last said.
    pub(super) fn tools(&self) -> Arc<[Arc<Remote>]> {
        Arc::clone(&self.tools.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts it where it does not run, and knows its tools then. What goes wrong is told.
    pub(super) async fn ready(self: &Arc<Self>) {
        if let Err(why) = self.connected().await {
            self.tell(&why);
        }
    }

    /// Calls a tool. A server that has ended is started once for it; one that ends while it works on the call is not
    /// asked again, because it may have done what was wanted.
    pub(super) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, CallError> {
        let work = async {
            let connection = self.connected().await.map_err(CallError::Gone)?;
            let deadline = Instant::now() + self.definition.timeout;
            match timeout_at(deadline, connection.call(tool, arguments)).await {
                Err(_) => Err(CallError::Timeout(self.definition.timeout)),
                Ok(Ok(result)) => {
                    self.state.lock().await.failures = 0;
                    Ok(result)
                }
                Ok(Err(Failure::Ended)) => {
                    self.lost(&mut *self.state.lock().await, &connection);
                    Err(CallError::Gone(self.ended("it ended while it worked on this call", &connection)))
                }
                Ok(Err(failure)) => Err(CallError::Failed(failure.to_string())),
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::Cancelled),
            done = work => done,
        }
    }

    /// Says goodbye, and lets nobody start it again.
    pub(super) async fn close(&self) {
        let mut state = self.state.lock().await;
        state.pause_ends = Some(Instant::now() + Duration::from_secs(86_400));
        state.why = "the session is over".to_owned();
        if let Some(running) = state.running.take() {
            running.connection.close().await;
        }
    }

    /// The connection, where need be a new one; an error says why there is none. Cancel safe.
    async fn connected(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let mut state = self.state.lock().await;
        if let Some(ended) = state.running.as_ref().map(|it| Arc::clone(&it.connection)).filter(|it| it.is_closed()) {
            self.lost(&mut state, &ended);
        }
        if let Some(running) = &state.running {
            return Ok(Arc::clone(&running.connection));
        }
        let wait = state.pause_ends.map(|end| end.saturating_duration_since(Instant::now()));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Err(format!("{}; it is started again in {} s at the earliest", state.why, wait.as_secs() + 1));
        }
        let started = match timeout(self.definition.startup_timeout, self.start()).await {
            Ok(started) => started,
            Err(_) => Err(format!("it was not ready after {} s", self.definition.startup_timeout.as_secs_f32())),
        };
        match started {
            Ok(connection) => {
                state.running = Some(Running {
                    _listening: AbortOnDropHandle::new(tokio::spawn(listen(
                        Arc::downgrade(self),
                        Arc::downgrade(&connection),
                    ))),
                    connection: Arc::clone(&connection),
                });
                Ok(connection)
            }
            Err(why) => {
                state.fail(self.named(&why));
                Err(state.why.clone())
            }
        }
    }

    async fn start(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        if let Some(seal) = self.definition.seal.clone() {
            let looked = tokio::task::spawn_blocking(move || seal.check()).await;
            looked.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        }
        let opened = match &self.definition.reached {
            Reached::Program { .. } => {
                let server = Arc::clone(self);
                let started = tokio::task::spawn_blocking(move || server.launch()).await;
                let started = started.map_err(|error| error.to_string())?;
                let (living, lines) = started.map_err(|error| format!("it cannot be started: {error}"))?;
                Connection::open(lines, Some(living)).await
            }
            Reached::Http { url, headers } => {
                let http =
                    Http::new(Client::new(Reach::Any), url.clone(), headers).map_err(|error| error.to_string())?;
                let config = StreamableHttpClientTransportConfig::with_uri(url.to_string());
                Connection::open(StreamableHttpClientTransport::with_client(http, config), None).await
            }
        };
        let connection = opened.map_err(|(error, program)| match program.map(|program| program.last_words()) {
            Some(words) if !words.trim().is_empty() => format!("{error}: {}", last(&words)),
            _ => error,
        })?;
        let connection = Arc::new(connection);
        self.look(&connection).await.map_err(|failure| format!("its tools cannot be listed: {failure}"))?;
        Ok(connection)
    }

    fn launch(&self) -> std::io::Result<(gatehook_engine::process::Living, super::program::Pipe)> {
        let Reached::Program { command, args, env, env_policy, working_dir } = &self.definition.reached else {
            return Err(std::io::ErrorKind::Unsupported.into());
        };
        let launch = Launch {
            name: &self.definition.name,
            command,
            args,
            env,
            env_policy,
            working_dir: working_dir.as_deref(),
            workspace: &self.host.workspace,
            host: &self.host.env,
        };
        launch.start()
    }

    /// Asks for the tools.
    async fn look(self: &Arc<Self>, connection: &Connection) -> Result<(), Failure> {
        let (found, are_more) = connection.tools().await?;
        if are_more {
            self.tell(&self.named(&format!("it has more than {MAX_TOOLS} tools: the others are left out")));
        }
        let wanted = |tool: &rmcp::model::Tool| {
            let names = &self.definition.tools;
            names.is_empty() || names.iter().any(|name| *name == tool.name)
        };
        let (mut tools, mut refused) = (Vec::<Arc<Remote>>::new(), Vec::new());
        for found in found.into_iter().filter(wanted) {
            match tool::remote(&self.definition, found) {
                Ok(tool) if tools.iter().all(|known| known.name != tool.name) => tools.push(Arc::new(tool)),
                Ok(tool) => refused.push(format!("`{}` stands twice", tool.name)),
                Err(why) => refused.push(why),
            }
        }
        if !refused.is_empty() {
            let shown = refused.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
            self.tell(&self.named(&format!("{} of its tools are left out: {shown}", refused.len())));
        }
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools.into();
        Ok(())
    }

    /// Keeps that a connection is of no more use, and tells it once.
    fn lost(&self, state: &mut State, connection: &Arc<Connection>) {
        if state.running.take_if(|running| Arc::ptr_eq(&running.connection, connection)).is_some() {
            state.fail(self.ended("it has ended", connection));
            self.tell(&state.why);
        }
    }

    fn ended(&self, what: &str, connection: &Connection) -> String {
        let words = connection.last_words();
        let said = if words.trim().is_empty() { String::new() } else { format!(": {}", last(&words)) };
        self.named(&format!("{what}{said}"))
    }

    fn named(&self, what: &str) -> String {
        format!("the MCP server `{}`: {what}", self.definition.name)
    }

    fn tell(&self, what: &str) {
        (self.host.notices)(what.to_owned());
    }
}

impl State {
    /// Keeps that it has failed: the first time it may be started again at once, then after a pause that grows.
    fn fail(&mut self, why: String) {
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.saturating_sub(1).min(16)));
        self.pause_ends = (self.failures > 0).then(|| Instant::now() + pause.min(LONGEST_PAUSE));
        self.failures = self.failures.saturating_add(1);
        self.why = why;
    }
}

/// Asks for the tools again whenever the server says that they have changed.
async fn listen(server: Weak<Server>, connection: Weak<Connection>) {
    while let Some(changed) = connection.upgrade().map(|connection| Arc::clone(&connection.changed)) {
        changed.notified().await;
        sleep(SETTLING).await;
        let (Some(server), Some(connection)) = (server.upgrade(), connection.upgrade()) else { return };
        let looked = timeout(server.definition.startup_timeout, server.look(&connection)).await;
        if let Ok(Err(failure)) = looked {
            server.tell(&server.named(&format!("its tools cannot be listed: {failure}")));
        }
    }
}

/// The end of a text, on one line, without controls.
fn last(words: &str) -> String {
    let line = plain(words.trim()).split_whitespace().collect::<Vec<_>>().join(" ");
    let skip = line.chars().count().saturating_sub(LAST_WORDS);
    line.chars().skip(skip).collect()
}
