//! A request body: what is not rewritten keeps its bytes, and what is rewritten is read again as it was asked for.
//!
//! The first byte is the path, `0` to `9` in the order of the tables; the rest is the body.

#![no_main]

use bytes::Bytes;
use gatehook_events::Message;
use gatehook_inference::{Path, Request, Route, TextRoute};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    let path = path(*first);
    let body = Bytes::copy_from_slice(body);
    let Ok(request) = Request::read(path, body.clone()) else { return };
    unchanged(&request, &body);
    if request.view().messages.is_empty() {
        return;
    }
    assert_eq!(request.rewrite(&request.view().messages).as_ref(), Ok(&request.unchanged()), "rewritten as shown");
    one_text(&request);
    another_list(&request);
});

fn path(byte: u8) -> Path {
    let routes = Route::ALL.iter().copied().map(Path::from);
    let paths: Vec<Path> = routes.chain(TextRoute::ALL.iter().copied().map(Path::from)).collect();
    paths[usize::from(byte.wrapping_sub(b'0')) % paths.len()]
}

/// The same bytes, or the same request without its approval.
fn unchanged(request: &Request, body: &Bytes) {
    let sent = request.unchanged();
    if request.view().approval.is_none() {
        assert_eq!(sent, body);
        return;
    }
    let again = read(request, sent, "without its approval");
    assert_eq!(again.view().approval, None);
    assert_eq!(again.view().messages, request.view().messages);
    assert_eq!(again.fingerprint("key"), request.fingerprint("key"));
}

/// The first text becomes another one, which is all that a reader of the result finds changed.
fn one_text(request: &Request) {
    let mut messages = request.view().messages.to_vec();
    let Some(message) = messages.iter_mut().find(|message| message.content.is_some()) else { return };
    message.content = Some("x".into());
    let Ok(sent) = request.rewrite(&messages) else { return };
    let again = read(request, sent.clone(), "with one text rewritten");
    assert_eq!(&*again.view().messages, messages, "in {}", sent.escape_ascii());
}

/// What is added or left out gives a body that can be read, or is refused.
fn another_list(request: &Request) {
    let shown = &request.view().messages;
    let longer: Vec<Message> = shown.iter().cloned().chain([Message::new("user", "x")]).collect();
    let led: Vec<Message> = [Message::new("system", "x")].into_iter().chain(shown.iter().cloned()).collect();
    for (what, messages) in [("longer", &longer[..]), ("led", &led), ("shorter", &shown[1..])] {
        if let Ok(sent) = request.rewrite(messages) {
            read(request, sent, what);
        }
    }
}

fn read(request: &Request, sent: Bytes, what: &str) -> Request {
    Request::read(request.path(), sent.clone())
        .unwrap_or_else(|error| panic!("{what}: {error}, in {}", sent.escape_ascii()))
}
