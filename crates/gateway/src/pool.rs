//! Connections to upstreams, kept for the next request of the same thread.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::{Duration, Instant};

use crate::body::RequestBody;
use crate::dial::{Endpoint, Io};

/// Idle connections of one upstream that are kept.
const IDLE_PER_UPSTREAM: usize = 256;
/// For how long. Servers commonly close after 60 to 75 seconds.
const IDLE_FOR: Duration = Duration::from_secs(50);

/// One HTTP/1 connection to an upstream.
///
/// Nothing runs it in the background: it makes progress when its exchange is polled, within the task of the client's
/// connection. So an answer costs no change of task, and a client that goes away takes its exchange with it.
pub(crate) struct Link {
    sender: SendRequest<RequestBody>,
    connection: Connection<TokioIo<Io>, RequestBody>,
    closed: bool,
    /// It has served an exchange before, and so may have been closed meanwhile.
    pub(crate) reused: bool,
    idle_since: Instant,
}

/// Why there was no answer.
#[derive(Debug)]
pub(crate) struct LinkError {
    pub(crate) error: hyper::Error,
    /// The request, if nothing of it has been sent.
    pub(crate) unsent: Option<Box<Request<RequestBody>>>,
}

impl Link {
    /// Opens a connection. Its first request may be sent at once.
    pub(crate) async fn open(endpoint: &Endpoint) -> std::io::Result<Self> {
        let io = endpoint.connect().await?;
        let (sender, connection) =
            Builder::new().max_buf_size(256 * 1024).handshake(TokioIo::new(io)).await.map_err(std::io::Error::other)?;
        let mut link = Self { sender, connection, closed: false, reused: false, idle_since: Instant::now() };
        link.drive(&mut idle_context());
        Ok(link)
    }

    /// Lets the connection read and write what it can.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.closed {
            self.closed = Pin::new(&mut self.connection).poll(cx).is_ready();
        }
    }

    /// Sends a request; the head of its answer.
    pub(crate) fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, LinkError>> + '_ {
        let answer = self.sender.try_send_request(request);
        async move {
            let mut answer = std::pin::pin!(answer);
            std::future::poll_fn(|cx| {
                if !self.closed {
                    self.closed = Pin::new(&mut self.connection).poll(cx).is_ready();
                }
                // Only the connection, polled above, can bring the answer: it need not wake this task.
                answer.as_mut().poll(&mut idle_context())
            })
            .await
            .map_err(|mut failed| LinkError { unsent: failed.take_message().map(Box::new), error: failed.into_error() })
        }
    }

    /// The next frame of an answer's body.
    pub(crate) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut *body).poll_frame(&mut idle_context());
        if frame.is_ready() {
            return frame;
        }
        self.drive(cx);
        Pin::new(body).poll_frame(&mut idle_context())
    }

    /// Whether the next request may be sent: the last exchange is over, and the upstream has not closed.
    fn is_ready(&mut self) -> bool {
        self.drive(&mut idle_context());
        !self.closed && self.sender.is_ready()
    }
}

/// For polls whose wake-up comes from elsewhere.
fn idle_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// The idle connections of one thread, by upstream: there are few.
#[derive(Default)]
pub(crate) struct Pool {
    idle: RefCell<Vec<Idle>>,
}

/// The idle connections of one upstream, the one used last at the end.
struct Idle {
    upstream: u64,
    links: VecDeque<Box<Link>>,
}

impl Pool {
    /// A connection that can be used at once: the one used last.
    pub(crate) fn take(&self, upstream: u64) -> Option<Box<Link>> {
        let mut idle = self.idle.borrow_mut();
        let idle = idle.iter_mut().find(|idle| idle.upstream == upstream)?;
        while let Some(mut link) = idle.links.pop_back() {
            if link.is_ready() {
                return Some(link);
            }
        }
        None
    }

    /// Keeps a connection whose exchange is over; drops it if it cannot be used again.
    pub(crate) fn put(&self, upstream: u64, mut link: Box<Link>) {
        if !link.is_ready() {
            return;
        }
        link.reused = true;
        link.idle_since = Instant::now();
        let mut all = self.idle.borrow_mut();
        match all.iter_mut().find(|idle| idle.upstream == upstream) {
            Some(idle) => {
                if idle.links.len() >= IDLE_PER_UPSTREAM {
                    idle.links.pop_front();
                }
                idle.links.push_back(link);
            }
            None => all.push(Idle { upstream, links: VecDeque::from([link]) }),
        }
    }

    /// Drops connections that have been idle for long.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        self.idle.borrow_mut().retain_mut(|idle| {
            while idle.links.front().is_some_and(|link| now.duration_since(link.idle_since) > IDLE_FOR) {
                idle.links.pop_front();
            }
            !idle.links.is_empty()
        });
    }
}
