//! A streamed answer that no hook looks at, with what its server left out of it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gatehook_inference::{Completion, Framing, Path};
use http::Response;
use http::header::CONTENT_ENCODING;
use http_body::{Body as _, Frame};
use hyper::body::Bytes;

use crate::body::Body;
use crate::forward::Broken;
use crate::framing::framing;
use crate::headers;

/// An upstream's stream, completed.
pub(crate) struct Completed {
    body: Body,
    completion: Completion,
    ended: bool,
}

/// The response as it came, or, where servers are known to leave things out of such streams, completed.
pub(crate) fn complete(path: Option<Path>, mut response: Response<Body>) -> Response<Body> {
    let Some(Path::Route(route)) = path else { return response };
    if !response.status().is_success()
        || framing(response.headers()) != Some(Framing::Events)
        || response.headers().contains_key(CONTENT_ENCODING)
    {
        return response;
    }
    let Some(completion) = Completion::of(route) else { return response };
    headers::stream_body(response.headers_mut());
    response.map(|body| Body::Completed(Box::new(Completed { body, completion, ended: false })))
}

impl Completed {
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(bytes) = self.completion.take() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.completion.push(data),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.completion.finish();
                    self.ended = true;
                }
            }
        }
    }

    pub(crate) fn is_end(&self) -> bool {
        self.ended
    }
}
