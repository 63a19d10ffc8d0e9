//! A raw upstream, a raw client, and a gateway between them: bytes in, bytes out.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use gatehook_engine::config::{Format, ReadOptions, parse};
use gatehook_engine::events::{Event, Input, Output, Permission};
use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, OnError, Registry};
use gatehook_gateway::config::{UpstreamConfig, UpstreamKind};
use gatehook_gateway::{Config, Gateway, Handle};
use gatehook_guard::Guard;

/// Longer than any of these tests may wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A request as the upstream received it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A message as it came over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

impl Seen {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// A connection on which messages are read.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> bool {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(read) => {
                self.buffer.extend_from_slice(&piece[..read]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no byte came in time: {error}"),
        }
    }

    /// Whether nothing has come by now. What the gateway could send it has sent: it has looked at everything that came
    /// before, for it answers others meanwhile.
    pub(crate) fn is_silent(&mut self) -> bool {
        let mut other = Wire::new(TcpStream::connect(self.stream.peer_addr().unwrap()).unwrap());
        assert_eq!(other.ask(get("/healthz")).status, 200);
        self.stream.set_nonblocking(true).unwrap();
        let nothing =
            matches!(self.stream.peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).unwrap();
        nothing && self.buffer.is_empty()
    }

    /// Whether the other side has closed; waits for it.
    pub(crate) fn is_closed(&mut self) -> bool {
        while self.fill() {}
        true
    }

    /// Everything up to and including `end`, if it comes.
    pub(crate) fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end) {
                let rest = self.buffer.split_off(at + end.len());
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            if !self.fill() {
                return None;
            }
        }
    }

    fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < length {
            if !self.fill() {
                return None;
            }
        }
        let rest = self.buffer.split_off(length);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    pub(crate) fn head(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(&self.until(b"\r\n\r\n")?).into_owned())
    }

    /// The body that belongs to a head, chunks joined; `None` where it breaks off.
    pub(crate) fn body(&mut self, head: &str) -> Option<Vec<u8>> {
        if header(head, "transfer-encoding") == Some("chunked") {
            let mut body = Vec::new();
            loop {
                let chunk = self.chunk()?;
                if chunk.is_empty() {
                    return Some(body);
                }
                body.extend(chunk);
            }
        }
        let length = header(head, "content-length").map_or(0, |length| length.parse().unwrap());
        self.exactly(length)
    }

    /// The next chunk of a body, empty at its end; `None` where it breaks off.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.until(b"\r\n")?;
        let size = usize::from_str_radix(String::from_utf8_lossy(&size).trim(), 16).unwrap();
        let chunk = self.exactly(size)?;
        self.exactly(2)?;
        Some(chunk)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a request and reads its response.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Reply {
        self.send(&request);
        self.reply().expect("a response")
    }

    pub(crate) fn reply(&mut self) -> Option<Reply> {
        let head = self.head()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let body = if status == 204 { Vec::new() } else { self.body(&head)? };
        Some(Reply { status, head, body })
    }
}

/// A server that does to each request what the test says, one thread a connection.
pub(crate) struct Upstream {
    pub(crate) addr: SocketAddr,
    seen: Receiver<Seen>,
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    /// `act` is called with each request; false closes the connection.
    pub(crate) fn new(act: impl Fn(&Seen, &mut Wire) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, seen) = channel();
        let (act, connections) = (Arc::new(act), Arc::<AtomicUsize>::default());
        let opened = connections.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                opened.fetch_add(1, Ordering::Relaxed);
                let (sender, act) = (sender.clone(), act.clone());
                std::thread::spawn(move || serve(Wire::new(stream), &sender, &*act));
            }
        });
        Self { addr, seen, connections }
    }

    /// Answers everything with these bytes.
    pub(crate) fn answering(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::new(move |_, wire| {
            wire.send(&response);
            true
        })
    }

    /// Answers everything with this JSON.
    pub(crate) fn json(body: &str) -> Self {
        Self::answering(response(200, "application/json", body))
    }

    /// The next request that came.
    pub(crate) fn seen(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).expect("a request reaches the upstream")
    }

    /// How many connections were opened to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether no request has come.
    pub(crate) fn saw_nothing(&self) -> bool {
        self.seen.try_recv().is_err()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

fn serve(mut wire: Wire, sender: &Sender<Seen>, act: &(dyn Fn(&Seen, &mut Wire) -> bool + Send + Sync)) {
    // A kept connection may stand idle for as long as the test runs.
    while let Some(head) = wire.head() {
        let Some(body) = wire.body(&head) else { return };
        let seen = Seen { head, body };
        let _ = sender.send(seen.clone());
        if !act(&seen, &mut wire) {
            return;
        }
    }
}

/// A response as it goes over the wire.
pub(crate) fn response(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A request as it goes over the wire.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    post_with(path, "Content-Type: application/json\r\n", body)
}

/// The same with other headers, each with its line end.
pub(crate) fn post_with(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

/// A gateway before an upstream.
pub(crate) struct Gate {
    pub(crate) handle: Handle,
}

/// A configuration for a test: a free port, one thread, this upstream.
pub(crate) fn config(url: &str) -> Config {
    let mut config = Config {
        upstreams: vec![UpstreamConfig::new("mock", UpstreamKind::Ollama, url)],
        workers: 1,
        ..Config::default()
    };
    config.listen.address.set_port(0);
    config
}

impl Gate {
    pub(crate) fn start(config: Config) -> Self {
        Self { handle: Gateway::start(config).unwrap() }
    }

    /// A gateway without hooks.
    pub(crate) fn before(upstream: &Upstream) -> Self {
        Self::start(config(&upstream.url()))
    }

    /// A gateway with one hook for one event.
    pub(crate) fn guarded(
        upstream: &Upstream,
        event: Event,
        judge: impl Fn(&Input) -> Judged + Send + Sync + 'static,
    ) -> Self {
        Self::start(Config { guard: guard(vec![hook(event, judge)]), ..config(&upstream.url()) })
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::new(TcpStream::connect(self.handle.addr).unwrap())
    }

    /// Sends one request on a connection of its own.
    pub(crate) fn ask(&self, request: impl AsRef<[u8]>) -> Reply {
        self.connect().ask(request)
    }
}

/// What a hook of a test says; `Err` makes it fail.
pub(crate) type Judged = Result<Option<Output>, String>;

/// A hook of a test.
pub(crate) struct Hook {
    event: Event,
    judge: Box<dyn Fn(&Input) -> Judged + Send + Sync>,
    on_error: Option<OnError>,
    observer: bool,
}

pub(crate) fn hook(event: Event, judge: impl Fn(&Input) -> Judged + Send + Sync + 'static) -> Hook {
    Hook { event, judge: Box::new(judge), on_error: None, observer: false }
}

impl Hook {
    pub(crate) fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = Some(on_error);
        self
    }

    pub(crate) fn observing(mut self) -> Self {
        self.observer = true;
        self
    }
}

/// The guard of these hooks, in their order.
pub(crate) fn guard(hooks: Vec<Hook>) -> Option<Arc<Guard>> {
    let registry = Registry::new();
    let mut groups = Vec::new();
    for (number, Hook { event, judge, on_error, observer }) in hooks.into_iter().enumerate() {
        let name = format!("hook{number}");
        let run = move |_: &gatehook_engine::BuiltinContext<'_>, input: &Input, _: &[String]| {
            let failed =
                |text| gatehook_engine::HandlerError::new(gatehook_engine::events::FailureKind::HandlerError, text);
            judge(input).map_err(failed)
        };
        registry.register_builtin(&name, run).unwrap();
        let definition = HookDefinition { on_error, observer, ..HookDefinition::builtin(&name, &[]) };
        groups.push(HookGroup { event, matcher: String::new(), hooks: vec![definition] });
    }
    let env = HandlerEnv::current().unwrap();
    let executor = Executor::with_registry(HooksConfig { groups }, env, &registry).unwrap();
    Guard::new(executor).map(Arc::new)
}

/// The guard of the hooks that this YAML names.
pub(crate) fn policy(text: &str) -> Option<Arc<Guard>> {
    let file =
        parse("policy.yaml", text, Format::Yaml, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let executor = Executor::new(file.hooks, HandlerEnv::current().unwrap()).unwrap();
    Guard::new(executor).map(Arc::new)
}

/// An answer to an inference event.
pub(crate) fn says(permission: Permission) -> Output {
    Output { permission: Some(permission), ..Output::default() }
}
