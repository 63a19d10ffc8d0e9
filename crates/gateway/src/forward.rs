//! One request's way to an upstream, and its answer's way back.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gatehook_guard::Refusal;
use gatehook_inference::ErrorKind;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::{Bytes, Incoming};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::body::RequestBody;
use crate::config::Limits;
use crate::exchange::Exchange;
use crate::pool::{Link, LinkError};
use crate::request_id::RequestId;
use crate::upstream::{Http, Upstream};
use crate::worker::Worker;

/// Sends the request of an exchange to `http`; the head of its answer, and the answer's body still at its source.
///
/// A kept connection that the upstream has closed meanwhile is replaced once by a new one, if nothing of the answer has
/// come and all of the request is still in hand.
pub(crate) async fn call(
    exchange: &Exchange,
    upstream: &Upstream,
    http: &Http,
    mut request: Request<RequestBody>,
) -> Result<Response<Answer>, Refusal> {
    let (worker, limits, id) = (&exchange.worker, &exchange.state.limits, exchange.id);
    let mut link = match worker.pool.take(upstream.id) {
        Some(link) => link,
        None => Box::pin(open(id, limits, upstream, http)).await?,
    };
    loop {
        let spare = link.reused.then(|| copy(&request)).flatten();
        let sent = timeout(limits.first_byte, link.send(request)).await;
        let LinkError { error, unsent } = match sent {
            Ok(Ok(response)) => return Ok(answer(exchange, upstream, link, response)),
            Ok(Err(error)) => error,
            Err(_) => return Err(Refusal::new(ErrorKind::UpstreamTimeout)),
        };
        match unsent.or(spare).filter(|_| link.reused) {
            Some(again) => request = *again,
            None => {
                tracing::warn!(%id, upstream = &*upstream.name, %error, "the upstream broke off");
                return Err(Refusal::new(ErrorKind::BadUpstream));
            }
        }
        link = Box::pin(open(id, limits, upstream, http)).await?;
    }
}

async fn open(id: RequestId, limits: &Limits, upstream: &Upstream, http: &Http) -> Result<Box<Link>, Refusal> {
    let error = match timeout(limits.connect, Link::open(&http.endpoint)).await {
        Ok(Ok(link)) => return Ok(Box::new(link)),
        Ok(Err(error)) => error,
        Err(late) => late.into(),
    };
    tracing::warn!(%id, upstream = &*upstream.name, %error, "the upstream cannot be reached");
    let kind = match error.kind() {
        std::io::ErrorKind::TimedOut => ErrorKind::UpstreamTimeout,
        _ => ErrorKind::BadUpstream,
    };
    Err(Refusal::new(kind).saying(format!("The inference server {} cannot be reached.", upstream.name)))
}

/// The request once more, if its body is in hand.
fn copy(request: &Request<RequestBody>) -> Option<Box<Request<RequestBody>>> {
    let body = request.body().again()?;
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(Box::new(copy))
}

fn answer(exchange: &Exchange, upstream: &Upstream, link: Box<Link>, response: Response<Incoming>) -> Response<Answer> {
    response.map(|body| {
        let mut answer = Answer {
            home: Some(Home { worker: exchange.worker.clone(), upstream: upstream.id, link }),
            body,
            next: None,
            apart: 0,
            idle: exchange.state.limits.idle,
            id: exchange.id,
            silent: None,
            watch: None,
        };
        answer.settle();
        answer
    })
}

/// Where a connection goes when its exchange is over.
struct Home {
    worker: Rc<Worker>,
    upstream: u64,
    link: Box<Link>,
}

/// An upstream's body as it comes. Read to its end it gives the connection back to the pool; dropped before it closes
/// the connection, and so cancels the upstream's work.
pub(crate) struct Answer {
    home: Option<Home>,
    body: Incoming,
    /// What came after frames that left as one.
    next: Option<Option<Result<Frame<Bytes>, Broken>>>,
    /// Frames that are still to leave one by one.
    apart: usize,
    idle: Duration,
    id: RequestId,
    /// Since when it has been waited for.
    silent: Option<Instant>,
    /// Armed anew only when it fires, so that what comes costs no timer.
    watch: Option<Pin<Box<Sleep>>>,
}

/// Frames up to this size in bytes that are there together leave together.
const MERGED: usize = 16 * 1024;

/// An upstream's answer ended before its time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the upstream broke off: {0}")]
    Off(#[from] hyper::Error),
    #[error("the upstream has been silent for too long")]
    Silent,
    #[error("the script breaks off here")]
    Scripted,
    #[error("the hooks on this stream cannot be asked any more")]
    Unguarded,
}

impl Answer {
    /// Of the next frames so many leave one by one, although others are there with them.
    pub(crate) fn keep_apart(&mut self, frames: usize) {
        self.apart = frames;
    }

    /// What has come, as one frame; none waits for another.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let frame = match self.next.take() {
            Some(next) => next,
            None => ready!(self.poll_one(cx)),
        };
        let first = match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        };
        let alone = self.apart > 0 || first.len() >= MERGED;
        self.apart = self.apart.saturating_sub(1);
        let data = if alone { first } else { self.merge(first, cx) };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    /// Adds what is already there to `first`.
    fn merge(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        let mut merged = Vec::new();
        while self.next.is_none() && self.home.is_some() && merged.len() < MERGED {
            match self.poll_one(cx).map(|frame| frame.map(|frame| frame.map(Frame::into_data))) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(Ok(data)))) => {
                    if merged.is_empty() {
                        merged.reserve(4 * (first.len() + data.len()));
                        merged.extend_from_slice(&first);
                    }
                    merged.extend_from_slice(&data);
                }
                Poll::Ready(Some(Ok(Err(trailers)))) => self.next = Some(Some(Ok(trailers))),
                Poll::Ready(Some(Err(error))) => self.next = Some(Some(Err(error))),
                Poll::Ready(None) => self.next = Some(None),
            }
        }
        if merged.is_empty() { first } else { merged.into() }
    }

    fn poll_one(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let Some(home) = &mut self.home else { return Poll::Ready(None) };
        match home.link.poll_frame(&mut self.body, cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.silent = None;
                self.settle();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                tracing::warn!(id = %self.id, %error, "the upstream broke off within its answer");
                self.home = None;
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                self.release();
                Poll::Ready(None)
            }
            Poll::Pending => self.poll_silence(cx).map(|()| {
                self.home = None;
                Some(Err(Broken::Silent))
            }),
        }
    }

    /// Whether the upstream has said nothing for too long. The clock starts with the first wait.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let silent = *self.silent.get_or_insert_with(Instant::now);
        let end = silent + self.idle;
        let watch = self.watch.get_or_insert_with(|| Box::pin(sleep_until(end)));
        loop {
            ready!(watch.as_mut().poll(cx));
            if watch.deadline() >= end {
                return Poll::Ready(());
            }
            watch.as_mut().reset(end);
        }
    }

    /// Gives the connection back as soon as the body is over.
    fn settle(&mut self) {
        if self.body.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some(Home { worker, upstream, link }) = self.home.take() {
            worker.pool.put(upstream, link);
        }
    }

    pub(crate) fn is_end(&self) -> bool {
        self.next.is_none() && (self.home.is_none() || self.body.is_end_stream())
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
