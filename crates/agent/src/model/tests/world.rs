//! A server that answers as it is told, a listener, and hooks that are functions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use gatehook_engine::client::{Client, Reach};
use gatehook_engine::events::{Event, FunctionCall, Input, Message, Output, ToolCall, Verdict};
use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
use gatehook_guard::Guard;
use http::HeaderMap;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::approval;
use crate::model::*;
use crate::tools::ToolSpec;

/// One answer of a server.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) status: u16,
    pub(super) headers: String,
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) ends: Ends,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ends {
    Well,
    /// The connection is closed within the answer.
    Off,
    /// Nothing more comes.
    Never,
}

impl Served {
    pub(super) fn stream(kind: &str, pieces: &[&str]) -> Self {
        let pieces = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        Self { status: 200, headers: format!("content-type: {kind}\r\n"), pieces, ends: Ends::Well }
    }

    pub(super) fn events(pieces: &[&str]) -> Self {
        Self::stream("text/event-stream", pieces)
    }

    pub(super) fn error(status: u16, body: &str) -> Self {
        Self { status, ..Self::stream("application/json", &[body]) }
    }

    pub(super) fn ending(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    pub(super) fn with(mut self, header: &str) -> Self {
        self.headers.push_str(header);
        self.headers.push_str("\r\n");
        self
    }
}

/// A server on loopback: each request gets the next answer, the last one again and again.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) url: String,
    pub(super) asked: Arc<Mutex<Vec<(String, Value)>>>,
    pub(super) closed: Arc<Notify>,
}

impl Host {
    pub(super) async fn start(answers: Vec<Served>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let host = Self { url, asked: Arc::default(), closed: Arc::default() };
        let (own, answers) = (host.clone(), Arc::new(Mutex::new(VecDeque::from(answers))));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(own.clone().serve(stream, answers.clone()));
            }
        });
        host
    }

    async fn serve(self, mut stream: TcpStream, answers: Arc<Mutex<VecDeque<Served>>>) {
        while let Some((path, body)) = read(&mut stream).await {
            self.asked.lock().unwrap().push((path, body));
            let served = {
                let mut answers = answers.lock().unwrap();
                if answers.len() > 1 { answers.pop_front().unwrap() } else { answers.front().unwrap().clone() }
            };
            let head = format!("HTTP/1.1 {} X\r\n{}transfer-encoding: chunked\r\n\r\n", served.status, served.headers);
            stream.write_all(head.as_bytes()).await.unwrap();
            for piece in &served.pieces {
                let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                if stream.write_all(&chunk).await.is_err() {
                    return self.closed.notify_one();
                }
                tokio::task::yield_now().await;
            }
            match served.ends {
                Ends::Well => stream.write_all(b"0\r\n\r\n").await.unwrap(),
                Ends::Off => return,
                Ends::Never => {
                    let _ = stream.read(&mut [0; 1]).await;
                    return self.closed.notify_one();
                }
            }
        }
    }

    /// Bodies of the requests to a path.
    pub(super) fn asked(&self, path: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(to, _)| to == path).map(|(_, body)| body.clone()).collect()
    }

    pub(super) fn model(&self, id: &str, format: Format) -> Model {
        let url = format!("{}{}", self.url, format.route().path()).parse().unwrap();
        Model::new(id, format, Server::Http(Http::new(Client::new(Reach::Any), url, HeaderMap::new())))
    }
}

async fn read(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    let head = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length =
        text.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |it| it.parse().unwrap());
    while bytes.len() < head + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let path = text.split(' ').nth(1).unwrap().to_owned();
    Some((path, serde_json::from_slice(&bytes[head..head + length]).unwrap_or(Value::Null)))
}

/// What was told while a model was asked.
#[derive(Default)]
pub(super) struct Listener {
    pub(super) said: Mutex<Vec<(bool, String)>>,
    pub(super) judged: Mutex<Vec<(Event, bool)>>,
    pub(super) waited: Mutex<Vec<Duration>>,
    /// Gives up at the first piece.
    pub(super) cancels: Option<CancellationToken>,
}

impl Listener {
    pub(super) fn all(&self, thinking: bool) -> String {
        let said = self.said.lock().unwrap();
        said.iter().filter(|(of, _)| *of == thinking).map(|(_, piece)| piece.as_str()).collect()
    }
}

impl Says for Listener {
    fn says<'a>(&'a self, thinking: bool, piece: &'a str) -> Saying<'a> {
        self.said.lock().unwrap().push((thinking, piece.to_owned()));
        if let Some(cancel) = &self.cancels {
            cancel.cancel();
        }
        Box::pin(std::future::ready(()))
    }

    fn judged(&self, event: Event, verdict: &Verdict) {
        self.judged.lock().unwrap().push((event, verdict.allowed));
    }

    fn waits(&self, _why: &ModelError, pause: Duration) {
        self.waited.lock().unwrap().push(pause);
    }
}

/// All of a question.
#[derive(Default)]
pub(super) struct Question {
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<Arc<ToolSpec>>,
    pub(super) guard: Option<Arc<Guard>>,
    pub(super) listener: Listener,
    pub(super) cancel: CancellationToken,
}

impl Question {
    pub(super) fn new(text: &str) -> Self {
        Self { messages: vec![Message::new("user", text)], ..Self::default() }
    }

    pub(super) async fn ask(&self, model: &Model) -> Result<Reply, ModelError> {
        let session = "s-1".into();
        model.ask(&self.as_ask(&session)).await
    }

    pub(super) fn as_ask<'a>(&'a self, session: &'a Arc<str>) -> Ask<'a> {
        Ask {
            system: None,
            messages: &self.messages,
            tools: &self.tools,
            guard: self.guard.as_ref(),
            session_id: session,
            says: &self.listener,
            cancel: &self.cancel,
        }
    }
}

pub(super) fn tool(name: &str, parameters: Value) -> Arc<ToolSpec> {
    let tool = approval::Tool { name: name.into(), ..Default::default() };
    Arc::new(ToolSpec { tool, description: format!("does {name}").into(), parameters: Arc::new(parameters) })
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: Some(id.into()),
        kind: "function".into(),
        function: FunctionCall { name: name.into(), arguments: arguments.into() },
        ..ToolCall::default()
    }
}

/// Hooks that are functions, and what they were shown.
pub(super) struct Hooks {
    registry: Registry,
    groups: Vec<HookGroup>,
    pub(super) seen: Arc<Mutex<Vec<(Event, Input)>>>,
}

impl Hooks {
    pub(super) fn new() -> Self {
        Self { registry: Registry::with_defaults(), groups: Vec::new(), seen: Arc::default() }
    }

    pub(super) fn on(
        mut self,
        event: Event,
        define: impl FnOnce(HookDefinition) -> HookDefinition,
        run: impl Fn(&Input) -> Option<Output> + Send + Sync + 'static,
    ) -> Self {
        let (name, seen) = (format!("hook_{}", self.groups.len()), self.seen.clone());
        let registered = self.registry.register_builtin(&name, move |context, input, _| {
            seen.lock().unwrap().push((context.event, input.clone()));
            Ok(run(input))
        });
        registered.unwrap();
        let hooks = vec![define(HookDefinition::builtin(&name, &[]))];
        self.groups.push(HookGroup { event, matcher: String::new(), hooks });
        self
    }

    pub(super) fn guard(self) -> Option<Arc<Guard>> {
        let env = HandlerEnv::current().unwrap();
        let executor = Executor::with_registry(HooksConfig { groups: self.groups }, env, &self.registry).unwrap();
        Guard::of_agent(executor, Default::default()).map(Arc::new)
    }
}
