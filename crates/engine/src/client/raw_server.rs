//! A server of raw bytes for tests: it answers what it is told to, well-formed or not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// What becomes of one request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, and the connection stays.
    Keep(Vec<u8>),
    /// These bytes, then the end of the connection.
    Close(Vec<u8>),
    /// These bytes, one a second.
    Drip(Vec<u8>),
    /// Nothing, ever.
    Hang,
}

/// Listens on loopback until it is dropped.
pub(crate) struct RawServer {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    _task: AbortOnDropHandle<()>,
}

struct State {
    /// For one request after another; the last for all that follow.
    answers: Vec<Answer>,
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl RawServer {
    pub(crate) async fn new(answers: &[Answer]) -> Self {
        Self::start(answers, None).await
    }

    pub(crate) async fn tls(answers: &[Answer], acceptor: TlsAcceptor) -> Self {
        Self::start(answers, Some(acceptor)).await
    }

    async fn start(answers: &[Answer], acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state =
            Arc::new(State { answers: answers.to_vec(), connections: AtomicUsize::new(0), requests: Mutex::default() });
        let serve = serve(listener, acceptor, Arc::clone(&state));
        Self { address, state, _task: AbortOnDropHandle::new(tokio::spawn(serve)) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Head and body of each request, as they came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, acceptor: Option<TlsAcceptor>, state: Arc<State>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        let (state, acceptor) = (Arc::clone(&state), acceptor.clone());
        connections.spawn(async move {
            match acceptor {
                None => answer(stream, &state).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer(stream, &state).await;
                    }
                }
            }
        });
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, state: &State) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await {
        let number = {
            let mut requests = state.requests.lock().unwrap();
            requests.push(request);
            requests.len() - 1
        };
        match state.answers.get(number).or(state.answers.last()).unwrap() {
            Answer::Keep(bytes) => {
                let _ = stream.write_all(bytes).await;
                let _ = stream.flush().await;
            }
            Answer::Close(bytes) => {
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Answer::Drip(bytes) => {
                for byte in bytes {
                    if stream.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            Answer::Hang => std::future::pending().await,
        }
    }
}

/// `None` at the end of the connection.
pub(crate) async fn read_request(stream: &mut BufReader<impl AsyncRead + Unpin>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8_lossy(&body))
}

/// A well-formed response.
pub(crate) fn response(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
