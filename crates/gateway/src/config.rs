//! What a gateway is told: plain values, checked when they are put in force.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gatehook_guard::Guard;
use gatehook_inference::Ending;

/// A gateway's configuration. The default stands before an Ollama on its usual port.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens, and whom it lets in.
    pub listen: Listen,
    /// Who may call; empty for everyone who reaches the address.
    pub keys: Vec<KeyConfig>,
    /// Where requests go; the first is the default. Never empty.
    pub upstreams: Vec<UpstreamConfig>,
    /// What is waited for, and how much is held.
    pub limits: Limits,
    /// How a streamed answer is sent while hooks look at it.
    pub streams: Streams,
    /// Whether models may be pulled, pushed, created, copied and deleted through the gateway.
    pub management: Door,
    /// What becomes of paths that the table does not know, once a hook may block.
    pub unknown_paths: Door,
    /// Network threads; 0 is one for each processor.
    pub workers: usize,
    /// What stands around each model call; `None` where no hook is configured for inference.
    pub guard: Option<Arc<Guard>>,
}

/// Whether a kind of path is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Forwarded, unhooked.
    Pass,
    /// Refused with 403.
    Closed,
}

/// Where the gateway listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address; port 0 picks a free one.
    pub address: SocketAddr,
    /// Listen beyond loopback although no key is asked for.
    pub open: bool,
    /// Browser origins beside the local ones, as in `https://chat.example.org` or `http://*.example.org`.
    pub origins: Vec<String>,
    /// Names beside the loopback ones by which a gateway on loopback may be called.
    pub hosts: Vec<String>,
}

/// The port, one above Ollama's.
pub const DEFAULT_PORT: u16 = 11435;

/// A key that callers present as bearer token or `x-api-key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyConfig {
    /// Its name, for logs and hooks.
    pub name: String,
    /// How it is known.
    pub secret: KeySecret,
}

/// How the gateway knows a key.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySecret {
    /// Its SHA-256 in hexadecimal.
    Sha256(String),
    /// A file that holds the key itself; blanks around it do not count.
    File(PathBuf),
}

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeySecret::Sha256(_) => f.write_str("Sha256(…)"),
            KeySecret::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// A server that runs models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// Its name in logs and metrics.
    pub name: String,
    /// What it speaks beside the six routes.
    pub kind: UpstreamKind,
    /// `http://host:port/base`, `https://…` or `replay:FILE` (`replay:` alone echoes).
    pub url: String,
    /// The models it serves, as patterns with `*`; empty for those that no other upstream claims.
    pub models: Vec<String>,
    /// The credential it wants, in place of the client's.
    pub api_key: Option<Secret>,
    /// A file with the certificate authorities of its `https`, in PEM; the system's by default.
    pub ca_file: Option<PathBuf>,
}

/// Where a secret is found.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// Here. Never shown.
    Value(String),
    /// In this file; blanks around it do not count.
    File(PathBuf),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Secret::Value(_) => f.write_str("Value(…)"),
            Secret::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Which paths a server has beside the six routes, and how it takes its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamKind {
    /// Ollama.
    Ollama,
    /// OpenAI and what is compatible: llama.cpp, vLLM and many more.
    OpenAi,
    /// Anthropic.
    Anthropic,
}

/// What is waited for, and how much is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body that a hook is to see, in bytes; larger ones get 413.
    pub request_body: usize,
    /// Most bytes that are kept of an answer for hooks: all of one that is whole, of a stream what waits. Beyond it the
    /// answer is 502, a stream that has begun ends in an error.
    pub response_body: usize,
    /// Bodies held for hooks at one time and what reading them takes, in bytes; beyond it requests get 503.
    pub bodies_in_flight: usize,
    /// Connections of clients at one time; further ones wait to be accepted.
    pub connections: usize,
    /// A client must have sent its request's head.
    pub client_head: Duration,
    /// A kept connection may stand idle for so long, a client may stop reading for `idle`.
    pub client_keep_alive: Duration,
    /// An upstream must have accepted the connection.
    pub connect: Duration,
    /// An upstream must have begun to answer.
    pub first_byte: Duration,
    /// An upstream may pause within an answer, and a client within a request.
    pub idle: Duration,
}

/// How a streamed answer is sent while hooks look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streams {
    /// The status line waits for the first text that may leave, but no longer than this. Until it is sent a refusal is a
    /// plain 400 or 403; after it one ends the stream.
    pub commit_after: Duration,
    /// A client for whom nothing may leave is sent a sign of life at this interval, where its protocol has one; zero
    /// sends none.
    pub keep_alive: Duration,
    /// How a stream that has begun ends when a hook refuses the rest.
    pub on_block: Ending,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            keys: Vec::new(),
            upstreams: vec![UpstreamConfig::new("ollama", UpstreamKind::Ollama, "http://127.0.0.1:11434")],
            limits: Limits::default(),
            streams: Streams::default(),
            management: Door::Pass,
            unknown_paths: Door::Closed,
            workers: 0,
            guard: None,
        }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            open: false,
            origins: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

impl UpstreamConfig {
    /// An upstream that serves every model and takes the client's credentials.
    pub fn new(name: impl Into<String>, kind: UpstreamKind, url: impl Into<String>) -> Self {
        Self { name: name.into(), kind, url: url.into(), models: Vec::new(), api_key: None, ca_file: None }
    }
}

const MIB: usize = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_body: 32 * MIB,
            response_body: 32 * MIB,
            bodies_in_flight: 512 * MIB,
            connections: 8192,
            client_head: Duration::from_secs(10),
            client_keep_alive: Duration::from_secs(75),
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
        }
    }
}

impl Default for Streams {
    fn default() -> Self {
        Self { commit_after: Duration::from_secs(10), keep_alive: Duration::from_secs(5), on_block: Ending::Refusal }
    }
}
