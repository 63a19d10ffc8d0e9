//! Ways round the hooks that stand in how a message is framed, labelled or answered.

use gatehook_engine::events::{Event, Permission};

use crate::support::{Gate, Upstream, get, post, says};

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

/// A gateway whose hook denies everything at `event`.
fn denying(upstream: &Upstream, event: Event) -> Gate {
    Gate::guarded(upstream, event, |_| Ok(Some(says(Permission::Deny))))
}

#[test]
fn a_body_where_there_is_none_does_not_carry_a_second_request() {
    let upstream = Upstream::json("{}");
    let gate = denying(&upstream, Event::PreInference);
    for method in ["GET", "HEAD"] {
        let hidden = post("/v1/chat/completions", CHAT);
        let mut request =
            format!("{method} /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", hidden.len());
        request.push_str(&String::from_utf8(hidden).unwrap());
        let mut wire = gate.connect();
        wire.send(request);
        assert!(wire.head().unwrap().starts_with("HTTP/1.1 400 "), "{method}");
    }
    assert!(upstream.saw_nothing());
    assert_eq!(gate.ask(get("/v1/models")).status, 200);
}

#[test]
fn a_client_cannot_have_the_encoding_of_its_body_dropped() {
    let upstream = Upstream::json("{}");
    let gate = Gate::guarded(&upstream, Event::PreInference, |_| Ok(Some(says(Permission::Allow))));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, CHAT.as_bytes()).unwrap();
    let body = encoder.finish().unwrap();
    let mut request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n\
         Connection: content-encoding\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend(body);
    assert_eq!(gate.ask(request).status, 200);
    assert_eq!(upstream.seen().header("content-encoding"), Some("gzip"));
}

#[test]
fn a_path_says_which_methods_it_has() {
    let upstream = Upstream::json("{}");
    let gate = denying(&upstream, Event::PreInference);
    for (path, methods) in [("/v1/messages", "POST"), ("/v1/models", "GET, HEAD"), ("/api/delete", "DELETE")] {
        let reply = gate.ask(format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!((reply.status, reply.header("allow")), (405, Some(methods)), "{path}");
    }
}

#[test]
fn another_protocol_that_nobody_asked_for_is_no_answer() {
    let upstream = Upstream::answering("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nsecret");
    assert_eq!(denying(&upstream, Event::PostInference).ask(post("/v1/chat/completions", CHAT)).status, 502);
}
