//! Tools of MCP servers (<https://modelcontextprotocol.io>), over standard input and output, or HTTP.
//!
//! [`Servers`] are those of a session. Each is started when it is needed first ([`Servers::ready`]), in a process group of
//! its own, and ends with them. One that has ended is started again by the next call, and after a pause that grows where
//! it keeps ending; the call on which it worked fails, and the session goes on. A server is not trusted: what it says is
//! bounded, it is offered nothing, and its tools pass the same approval as all others.

mod connection;
mod definition;
mod http;
mod program;
mod server;
mod tool;

use std::sync::Arc;

use futures_util::future::join_all;

pub use definition::{Naming, Reached, ServerDefinition};
pub use server::Host;

use self::server::Server;
use self::tool::RemoteTool;
use crate::team::{AgentDefinition, Tools, Toolset};
use crate::tools::{Shelf, Tool};

/// The servers of a session. Dropped, all of them end.
#[derive(Clone)]
pub struct Servers(Arc<[Arc<Server>]>);

impl Servers {
    /// Servers of which none is started yet.
    pub fn new(definitions: &[ServerDefinition], host: &Host) -> Self {
        let server = |definition: &ServerDefinition| Arc::new(Server::new(definition.clone(), host.clone()));
        Self(definitions.iter().map(server).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Starts those that do not run, side by side, and waits until each is ready or has failed, which the person is told.
    /// Cancel safe.
    pub async fn ready(&self) {
        join_all(self.0.iter().map(Server::ready)).await;
    }

    /// The same for one agent, as its session asks for it.
    pub fn shelf(&self, agent: &AgentDefinition) -> Arc<dyn Shelf> {
        Arc::new(OfAgent { servers: self.clone(), agent: agent.clone() })
    }

    /// What an agent may call of them now. Servers may change their tools while they run: ask again for each question
    /// to a model.
    pub fn tools(&self, agent: &AgentDefinition) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let all = |server: &Arc<Server>| Toolset {
            tools: Tools::Server(server.definition.name.clone()),
            only: Vec::new(),
            read_only: false,
            instruction: None,
        };
        let toolsets = agent.toolsets.clone().unwrap_or_else(|| self.0.iter().map(all).collect());
        for toolset in &toolsets {
            let Tools::Server(name) = &toolset.tools else { continue };
            let Some(server) = self.0.iter().find(|server| server.definition.name == *name) else { continue };
            for remote in server.tools().iter() {
                let tool = &remote.spec.tool;
                let is_named = |only: &String| *only == remote.name || **only == *tool.name;
                let is_meant = toolset.only.is_empty() || toolset.only.iter().any(is_named);
                let changes = !tool.read_only && (toolset.read_only || agent.read_only);
                let is_there = tools.iter().any(|known| known.spec().tool.name == tool.name);
                if is_meant && !changes && !is_there {
                    let (server, remote, spec) = (Arc::clone(server), Arc::clone(remote), remote.spec.clone());
                    tools.push(Arc::new(RemoteTool { server, remote, spec }));
                }
            }
        }
        tools
    }

    /// Says goodbye to all of them, within half a second. Programs that do not end by themselves are ended when the last
    /// clone is dropped.
    pub async fn close(&self) {
        join_all(self.0.iter().map(|server| server.close())).await;
    }
}

/// What one agent may call of all servers.
struct OfAgent {
    servers: Servers,
    agent: AgentDefinition,
}

impl Shelf for OfAgent {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.servers.tools(&self.agent)
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|server| &server.definition.name)).finish()
    }
}

#[cfg(test)]
mod tests;
