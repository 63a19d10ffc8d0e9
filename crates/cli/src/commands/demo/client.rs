//! The client of the demonstration: one request on one connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// An exchange that takes longer has failed.
const DEADLINE: Duration = Duration::from_secs(10);

/// Largest answer that is read.
const LIMIT: usize = 1 << 20;

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    /// One object, or those of a stream.
    body: Vec<Value>,
}

impl Answer {
    fn read(status: u16, body: &[u8]) -> io::Result<Self> {
        let events = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        let events: Vec<&[u8]> = events.filter(|data| *data != b"[DONE]").collect();
        let objects = if events.is_empty() { vec![body] } else { events };
        let body: Result<_, _> = objects.into_iter().map(serde_json::from_slice).collect();
        Ok(Self { status, body: body? })
    }

    /// All text at this place, if there is any.
    pub(super) fn text(&self, pointer: &str) -> Option<String> {
        let texts: Vec<&str> = self.body.iter().filter_map(|object| object.pointer(pointer)?.as_str()).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }
}

/// Sends JSON, and waits for JSON or a stream of it.
pub(super) async fn post(server: SocketAddr, path: &str, body: &Value) -> io::Result<Answer> {
    let request = Request::post(path)
        .header("host", server.to_string())
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(io::Error::other)?;
    tokio::time::timeout(DEADLINE, exchange(server, request)).await?
}

async fn exchange(server: SocketAddr, request: Request<Full<Bytes>>) -> io::Result<Answer> {
    let stream = TcpStream::connect(server).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), LIMIT).collect().await.map_err(io::Error::other)?.to_bytes();
        Answer::read(status, &body)
    };
    tokio::select! {
        answer = answer => answer,
        ended = connection => Err(io::Error::other(ended.err().map_or("the gateway hung up".to_owned(), |e| e.to_string()))),
    }
}
