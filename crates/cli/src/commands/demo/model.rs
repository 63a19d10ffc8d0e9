//! A recorded model behind a real socket: answers each prompt from a list, and remembers what it was asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A word of the prompt, and the answer.
const ANSWERS: [(&str, &str); 2] =
    [("France", "Paris."), ("REDACTED", concat!("I only know AKIA", "Q3EGRV5JN7XTWD2M, not yours."))];

/// How many bytes of an answer a frame of a stream holds.
const FRAME: usize = 5;

/// Largest request that is read.
const LIMIT: usize = 1 << 20;

/// The model. Dropping it stops it.
pub(super) struct Model {
    pub(super) address: SocketAddr,
    asked: Asked,
    server: JoinHandle<()>,
}

/// The prompt since somebody last looked.
type Asked = Arc<Mutex<Option<String>>>;

impl Model {
    /// Listens on a free port of this machine.
    pub(super) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Asked::default();
        let server = tokio::spawn(serve(listener, Arc::clone(&asked)));
        Ok(Self { address, asked, server })
    }

    /// The prompt that arrived since the last call.
    pub(super) fn last_prompt(&self) -> Option<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, asked: Asked) {
    // Connections live in this task, so that they end with it.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let asked = Arc::clone(&asked);
        let service = service_fn(move |request| answer(request, Arc::clone(&asked)));
        connections.spawn(async move {
            // A client that breaks off is its own loss.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, asked: Asked) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = Limited::new(request.into_body(), LIMIT).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let prompt = body.pointer("/messages/0/content").and_then(Value::as_str).unwrap_or_default().to_owned();
    let text =
        ANSWERS.iter().find(|(word, _)| prompt.contains(word)).map_or("I have nothing to say.", |(_, text)| text);
    *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(prompt);
    let (kind, reply) = match body.get("stream") == Some(&Value::Bool(true)) {
        true => ("text/event-stream", stream(text)),
        false => ("application/json", whole(text)),
    };
    let mut response = Response::new(Full::new(reply.into()));
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}

fn whole(text: &str) -> String {
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "recorded", "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
    .to_string()
}

fn stream(text: &str) -> String {
    let frame = |delta: Value, stop: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": stop});
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "recorded", "choices": [choice],
        });
        format!("data: {chunk}\n\n")
    };
    let pieces = text.as_bytes().chunks(FRAME).map(String::from_utf8_lossy);
    let mut frames: String = pieces.map(|piece| frame(json!({"content": piece}), None)).collect();
    frames.push_str(&frame(json!({}), Some("stop")));
    frames + "data: [DONE]\n\n"
}
