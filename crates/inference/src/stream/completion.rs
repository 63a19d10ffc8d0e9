//! A stream that nobody judges, on its way through: what its server left out of it is filled in.

use bytes::Bytes;

use super::{CallId, Fate, Relay, TrackId};
use crate::route::Route;

/// How many bytes of a stream are kept to complete it: the text that its last events repeat, and a frame that is not
/// there as a whole. Behind that it passes as it comes.
const LIMIT: usize = 4 << 20;

/// Fills in what servers leave out of streams of Responses, as places and the events that end an item, so that strict
/// readers take them. A stream that lacks nothing leaves byte for byte, and so does all that cannot be read: who judges
/// nothing refuses nothing.
#[derive(Debug)]
pub struct Completion {
    relay: Relay,
    /// What is not read any more, as it came.
    rest: Option<Bytes>,
    /// The stream is over, or cannot be read on.
    done: bool,
}

impl Completion {
    /// For a stream of `route`; none where servers leave nothing out.
    pub fn of(route: Route) -> Option<Self> {
        (route == Route::Responses).then(|| Self { relay: Relay::through(route), rest: None, done: false })
    }

    /// Takes bytes of the upstream, split anywhere. All that came before must have been taken.
    pub fn push(&mut self, bytes: Bytes) {
        if self.done {
            self.rest = Some(bytes);
            return;
        }
        self.done = self.relay.push(bytes).is_err() || self.relay.is_over() || self.relay.held() > LIMIT;
        self.let_go();
        if self.done {
            self.rest = Some(self.relay.unread());
        }
    }

    /// The upstream has ended.
    pub fn finish(&mut self) {
        if !self.done {
            // Whether that is the end of the answer is for the client to say.
            let _ = self.relay.finish();
            self.let_go();
            self.done = true;
        }
    }

    /// What may leave now.
    pub fn take(&mut self) -> Option<Bytes> {
        self.relay.take().or_else(|| self.rest.take()).filter(|bytes| !bytes.is_empty())
    }

    fn let_go(&mut self) {
        for track in 0..self.relay.tracks().len() {
            self.relay.allow(TrackId(track), usize::MAX);
        }
        for call in 0..self.relay.calls().len() {
            if self.relay.calls().get(call).is_some_and(|call| !call.decided) {
                let _ = self.relay.decide(CallId(call), Fate::Keep);
            }
        }
    }
}
