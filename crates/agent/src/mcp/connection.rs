//! A connection to a server: from `initialize` to its end, and the list of its tools meanwhile.

use std::sync::Arc;
use std::time::Duration;

use gatehook_engine::process::Living;
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, Implementation,
    InitializeRequestParams, PaginatedRequestParams, Tool,
};
use rmcp::service::{NotificationContext, Peer, RunningService, ServiceError, serve_client};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Notify};

/// Tools of one server.
pub(super) const MAX_TOOLS: usize = 256;
/// Pages of their list.
const MAX_PAGES: usize = 64;
/// How long a server may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// A server that has answered `initialize`.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Listener>>>,
    /// The program, where it is one. Ended with the connection.
    program: Option<Living>,
    /// The server says that its tools are others now.
    pub(super) changed: Arc<Notify>,
}

/// Why a server does not answer as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// Nobody is there any more.
    #[error("it has ended")]
    Ended,
    /// It answered that it will not.
    #[error("{0}")]
    Refused(String),
    /// It answered something else.
    #[error("{0}")]
    Confused(String),
}

impl Connection {
    /// Speaks first. The caller sets a deadline: dropped, nothing is left of it.
    pub(super) async fn open<T>(transport: T, program: Option<Living>) -> Result<Self, (String, Option<Living>)>
    where
        T: Transport<RoleClient> + 'static,
    {
        let changed = Arc::new(Notify::new());
        match serve_client(Listener { changed: Arc::clone(&changed) }, transport).await {
            Ok(service) => {
                let peer = service.peer().clone();
                Ok(Self { peer, service: Mutex::new(Some(service)), program, changed })
            }
            Err(error) => Err((error.to_string(), program)),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// What its program said of late.
    pub(super) fn last_words(&self) -> String {
        self.program.as_ref().map(Living::last_words).unwrap_or_default()
    }

    /// Whether it has tools at all, by its own word.
    fn has_tools(&self) -> bool {
        self.peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some())
    }

    /// All of its tools, but no more than [`MAX_TOOLS`]; the second says whether there are more. Cancel safe.
    pub(super) async fn tools(&self) -> Result<(Vec<Tool>, bool), Failure> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        if !self.has_tools() {
            return Ok((tools, false));
        }
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.peer.list_tools(Some(params)).await.map_err(failure)?;
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS {
                break;
            }
            match page.next_cursor {
                Some(next) if Some(&next) != cursor.as_ref() => cursor = Some(next),
                _ => return Ok((tools, false)),
            }
        }
        tools.truncate(MAX_TOOLS);
        Ok((tools, true))
    }

    /// Calls a tool. Dropped before the answer is there, it tells the server so.
    pub(super) async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<CallToolResult, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        match self.peer.call_tool_once(params).await.map_err(failure)? {
            CallToolResponse::Complete(result) => Ok(result),
            _ => Err(Failure::Confused("it wants what this program does not do: input while it works".to_owned())),
        }
    }

    /// Says goodbye, within a bound.
    pub(super) async fn close(&self) {
        if let Some(mut service) = self.service.lock().await.take() {
            let _ = service.close_with_timeout(GOODBYE).await;
        }
    }
}

fn failure(error: ServiceError) -> Failure {
    match error {
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Failure::Ended,
        ServiceError::McpError(error) => Failure::Refused(error.message.to_string()),
        ServiceError::TransportSend(error) => Failure::Confused(error.error.to_string()),
        error => Failure::Confused(error.to_string()),
    }
}

/// Hears what a server says of itself. It offers the server nothing: no sampling, no roots, no questions to the user.
struct Listener {
    changed: Arc<Notify>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> InitializeRequestParams {
        let client = Implementation::new("gatehook", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(ClientCapabilities::default(), client)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
