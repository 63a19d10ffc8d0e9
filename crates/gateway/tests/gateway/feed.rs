//! Streams in a test's hands: the upstream says what the test says, when it says it, and the client reads as far as the
//! test wants.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use crate::support::{Gate, PATIENCE, Seen, Wire, response};

pub(crate) const SSE: &str = "text/event-stream";
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// A server whose answers the test writes, one connection a request.
pub(crate) struct Feeds {
    addr: SocketAddr,
    feeds: Receiver<Feed>,
}

impl Feeds {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, feeds) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let mut wire = Wire::new(stream);
                    let head = wire.head()?;
                    let body = wire.body(&head)?;
                    sender.send(Feed { seen: Seen { head, body }, wire }).ok()
                });
            }
        });
        Self { addr, feeds }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The next request, and the connection to answer it on.
    pub(crate) fn next(&self) -> Feed {
        self.feeds.recv_timeout(PATIENCE).expect("a request reaches the upstream")
    }

    /// The next request, whose answer has begun as a stream of this type.
    pub(crate) fn begin(&self, kind: &str) -> Feed {
        let mut feed = self.next();
        feed.begin(kind, "");
        feed
    }
}

/// A request that waits for its answer. Dropped, it breaks off.
pub(crate) struct Feed {
    pub(crate) seen: Seen,
    pub(crate) wire: Wire,
}

impl Feed {
    /// The head of a stream, with further headers, each with its line end.
    pub(crate) fn begin(&mut self, kind: &str, headers: &str) {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n");
        self.wire.send(head);
    }

    /// A whole answer, as JSON.
    pub(crate) fn answer(&mut self, body: &str) {
        self.wire.send(response(200, "application/json", body));
    }

    /// A piece of the stream.
    pub(crate) fn send(&mut self, piece: impl AsRef<[u8]>) {
        assert!(self.offer(piece), "the gateway still reads");
    }

    /// The same; false once the gateway has closed.
    pub(crate) fn offer(&mut self, piece: impl AsRef<[u8]>) -> bool {
        let piece = piece.as_ref();
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        self.wire.stream.write_all(&chunk).is_ok()
    }

    /// The end of the body, whoever still reads it.
    pub(crate) fn end(mut self) {
        let _ = self.wire.stream.write_all(b"0\r\n\r\n");
    }

    /// Whether the gateway has closed the connection; waits for it.
    pub(crate) fn is_left(&mut self) -> bool {
        self.wire.is_closed()
    }
}

/// A response while it comes.
pub(crate) struct Coming {
    pub(crate) head: String,
    pub(crate) wire: Wire,
    body: Vec<u8>,
}

impl Gate {
    /// Sends a request; its response, of which nothing need have come yet.
    pub(crate) fn begin(&self, request: impl AsRef<[u8]>) -> Wire {
        let mut wire = self.connect();
        wire.send(request);
        wire
    }

    /// Waits until no guarded stream is open, and nothing is held for any.
    pub(crate) fn comes_to_rest(&self) {
        let begun = Instant::now();
        while self.measured("gatehook_streams_open") + self.measured("gatehook_held_body_bytes") > 0 {
            assert!(begun.elapsed() < PATIENCE, "{}", self.handle.metrics());
            std::thread::yield_now();
        }
    }

    /// The value of a metric without labels.
    pub(crate) fn measured(&self, name: &str) -> usize {
        let text = self.handle.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
    }
}

impl Coming {
    /// Waits for the head.
    pub(crate) fn new(mut wire: Wire) -> Self {
        let head = wire.head().expect("a head");
        Self { head, wire, body: Vec::new() }
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("no character is cut")
    }

    /// Waits until this has come.
    pub(crate) fn until(&mut self, text: &str) {
        let begun = Instant::now();
        while !String::from_utf8_lossy(&self.body).contains(text) {
            assert!(begun.elapsed() < PATIENCE, "{text:?} comes in time: {}", self.text());
            let chunk = self.wire.chunk().filter(|chunk| !chunk.is_empty());
            let chunk = chunk.unwrap_or_else(|| panic!("{text:?} comes before the end: {}", self.text()));
            self.body.extend(chunk);
        }
    }

    /// Forgets what has come.
    pub(crate) fn forget(&mut self) {
        self.body.clear();
    }

    /// All of the body, which must come to its end.
    pub(crate) fn whole(mut self) -> String {
        self.rest()
    }

    /// The same, with the connection left open.
    pub(crate) fn rest(&mut self) -> String {
        loop {
            let chunk = self.wire.chunk().unwrap_or_else(|| panic!("the body breaks off: {}", self.text()));
            if chunk.is_empty() {
                return self.text();
            }
            self.body.extend(chunk);
        }
    }
}
