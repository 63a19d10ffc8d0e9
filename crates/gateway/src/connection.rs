//! One client's connection: HTTP/1, its deadlines, and its end.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Request;
use http_body::{Frame, SizeHint};
use hyper::body::{Body as HttpBody, Bytes, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::body::Body;
use crate::config::Limits;
use crate::exchange;
use crate::forward::Broken;
use crate::worker::Worker;

/// Most bytes of a request's head.
const HEAD_LIMIT: usize = 64 * 1024;
/// Most bytes that are buffered for a connection.
const BUFFER_LIMIT: usize = 256 * 1024;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Waits {
    /// A request's head, of which some has come; or the first head of all.
    #[default]
    Head,
    /// The next request.
    Next,
    /// The gateway.
    Us,
}

/// What is to happen to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Order {
    #[default]
    Serve,
    /// End after the request that has begun.
    Finish,
    /// End at once.
    Cut,
}

/// A connection seen from its thread: what it waits for, how long already, and how it is ended.
///
/// Deadlines are counted in ticks of the thread, so that a request costs no timer.
#[derive(Debug, Default)]
pub(crate) struct Control {
    waits: Cell<Waits>,
    /// The client does not take what is written.
    stuck: Cell<bool>,
    waited: Cell<Duration>,
    order: Cell<Order>,
    task: RefCell<Option<Waker>>,
    /// How often its task has been polled.
    turn: Cell<u64>,
}

impl Control {
    fn now_waits(&self, waits: Waits) {
        self.waits.set(waits);
        self.waited.set(Duration::ZERO);
    }

    /// A tick has passed.
    pub(crate) fn tick(&self, limits: &Limits, tick: Duration) {
        let limit = match self.waits.get() {
            Waits::Head => limits.client_head,
            Waits::Next => limits.client_keep_alive,
            Waits::Us if self.stuck.get() => limits.idle,
            Waits::Us => return,
        };
        self.waited.set(self.waited.get() + tick);
        if self.waited.get() >= limit {
            self.give(Order::Cut);
        }
    }

    /// The connection ends after the request that has begun.
    pub(crate) fn finish(&self) {
        self.give(Order::Finish);
    }

    fn give(&self, order: Order) {
        self.order.set(order);
        if let Some(task) = self.task.borrow_mut().take() {
            task.wake();
        }
    }

    /// Remembers whom to wake for an order.
    fn listen(&self, cx: &Context<'_>) {
        let mut task = self.task.borrow_mut();
        match &*task {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => *task = Some(cx.waker().clone()),
        }
    }
}

/// Speaks with a client until one of the two has enough.
pub(crate) async fn serve(worker: &Rc<Worker>, stream: TcpStream, peer: SocketAddr, control: Rc<Control>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let io = TokioIo::new(Watched { stream, control: control.clone() });
    let service = service_fn(|request: Request<Incoming>| {
        control.now_waits(Waits::Us);
        let busy = Busy(control.clone());
        let exchange = exchange::answer(worker.clone(), peer, request);
        async move { Ok::<_, Infallible>(exchange.await.map(|body| Reply { body, waits: 0, busy })) }
    });
    let mut connection = std::pin::pin!(
        Builder::new().max_buf_size(BUFFER_LIMIT).max_header_size(HEAD_LIMIT).serve_connection(io, service)
    );
    let mut finishing = false;
    let ended = std::future::poll_fn(|cx| {
        control.listen(cx);
        control.turn.set(control.turn.get() + 1);
        match control.order.get() {
            Order::Serve => {}
            Order::Finish if !finishing => {
                finishing = true;
                connection.as_mut().graceful_shutdown();
            }
            Order::Finish => {}
            Order::Cut => return Poll::Ready(Ok(())),
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

/// While it lives, the client waits for the gateway.
struct Busy(Rc<Control>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.now_waits(Waits::Next);
    }
}

/// A response's body; its end is the end of the exchange.
struct Reply {
    body: Body,
    /// In this turn of the task it had nothing more. What comes wakes the task, for another turn: hyper, which asks several
    /// times in each, need not be told again.
    waits: u64,
    busy: Busy,
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let turn = self.busy.0.turn.get();
        if self.waits == turn {
            return Poll::Pending;
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_pending() {
            self.waits = turn;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A client's socket, which tells the connection's deadlines what moves.
struct Watched {
    stream: TcpStream,
    control: Rc<Control>,
}

impl Watched {
    fn written(&self, written: &Poll<io::Result<usize>>) {
        if self.control.stuck.get() != written.is_pending() {
            self.control.stuck.set(written.is_pending());
            self.control.waited.set(Duration::ZERO);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() && self.control.waits.get() == Waits::Next {
            self.control.now_waits(Waits::Head);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
