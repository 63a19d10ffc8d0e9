//! Bodies on their way: requests to an upstream, responses to a client.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::{Bytes, Incoming};

use crate::completed::Completed;
use crate::forward::Answer;
use crate::live::Live;
use crate::replay::Script;

/// What is sent to an upstream: bytes in hand, then what the client still sends.
#[derive(Debug, Default)]
pub(crate) struct RequestBody {
    first: Option<Bytes>,
    rest: Option<Incoming>,
}

impl RequestBody {
    /// A body that is all there.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { first: Some(bytes).filter(|bytes| !bytes.is_empty()), rest: None }
    }

    /// A client's body, whose first frame is awaited, so that head and body leave in one piece.
    pub(crate) async fn begin(mut body: Incoming) -> hyper::Result<Self> {
        if body.is_end_stream() {
            return Ok(Self::default());
        }
        let first = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.transpose()?;
        let first = first.and_then(|frame| frame.into_data().ok());
        let ended = first.is_none() || body.is_end_stream();
        Ok(Self { first, rest: (!ended).then_some(body) })
    }

    /// A copy to send once more, if all of it is in hand.
    pub(crate) fn again(&self) -> Option<Self> {
        self.rest.is_none().then(|| Self { first: self.first.clone(), rest: None })
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if let Some(bytes) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(first + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(first + upper);
        }
        hint
    }
}

/// What a client is sent.
#[derive(Default)]
pub(crate) enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// Bytes that are there.
    Whole(Bytes),
    /// An upstream's answer, as it comes.
    Answer(Box<Answer>),
    /// A script's answer.
    Script(Script),
    /// A stream that hooks look at.
    Live(Box<Live>),
    /// A stream that nobody judges, with what its server left out.
    Completed(Box<Completed>),
}

impl Body {
    /// Of the next frames of an upstream so many come one by one, although others are there with them.
    pub(crate) fn keep_apart(&mut self, frames: usize) {
        if let Self::Answer(answer) = self {
            answer.keep_apart(frames);
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = crate::forward::Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Body::Empty => Poll::Ready(None),
            Body::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Body::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Body::Answer(answer) => answer.poll_frame(cx),
            Body::Script(script) => script.poll_frame(),
            Body::Live(live) => live.poll_bytes(cx).map(|bytes| bytes.map(|bytes| bytes.map(Frame::data))),
            Body::Completed(completed) => completed.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Empty => true,
            Body::Whole(bytes) => bytes.is_empty(),
            Body::Answer(answer) => answer.is_end(),
            Body::Script(script) => script.is_end(),
            Body::Live(live) => live.is_end(),
            Body::Completed(completed) => completed.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Empty => SizeHint::with_exact(0),
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Answer(answer) => answer.size_hint(),
            Body::Script(script) => script.size_hint(),
            Body::Live(_) | Body::Completed(_) => SizeHint::default(),
        }
    }
}
