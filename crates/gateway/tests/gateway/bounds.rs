//! What is too large, too slow or broken ends in an error that the caller's library understands.

use std::time::Duration;

use gatehook_engine::events::Event;
use gatehook_gateway::Config;
use gatehook_gateway::config::Limits;
use serde_json::json;

use crate::support::{Gate, Judged, Reply, Upstream, Wire, config, get, guard, hook, post, post_with, response};

fn nothing(_: &gatehook_engine::events::Input) -> Judged {
    Ok(None)
}

fn limited(upstream: &Upstream, event: Event, limits: Limits) -> Gate {
    Gate::start(Config { limits, guard: guard(vec![hook(event, nothing)]), ..config(&upstream.url()) })
}

/// A port on which nobody listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// The error's text in each wire's shape.
fn error_of(reply: &Reply, path: &str) -> String {
    let json = reply.json();
    let text = match path {
        path if path.starts_with("/api/") => &json["error"],
        "/v1/messages" => {
            assert_eq!(json["type"], "error", "{json}");
            &json["error"]["message"]
        }
        _ => &json["error"]["message"],
    };
    text.as_str().unwrap_or_else(|| panic!("{path}: {json}")).to_owned()
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_sent() {
    let upstream = Upstream::json("{}");
    let gate = limited(&upstream, Event::PreInference, Limits { request_body: 100, ..Limits::default() });
    let head = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n";
    let reply = gate.ask(head);
    assert_eq!(reply.status, 413);
    assert_eq!(reply.json()["error"]["type"], "request_too_large");
    assert!(upstream.saw_nothing());
}

#[test]
fn a_chunked_body_is_counted() {
    let upstream = Upstream::json("{}");
    let gate = limited(&upstream, Event::PreInference, Limits { request_body: 100, ..Limits::default() });
    let chunk = format!("40\r\n{}\r\n", " ".repeat(64));
    let request = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(gate.ask(format!("{request}{chunk}{chunk}")).status, 413);
    assert!(upstream.saw_nothing());
}

#[test]
fn without_hooks_there_is_no_limit() {
    let upstream = Upstream::json("{}");
    let limits = Limits { request_body: 100, ..Limits::default() };
    let gate = Gate::start(Config { limits, ..config(&upstream.url()) });
    assert_eq!(gate.ask(post("/api/chat", &" ".repeat(5000))).status, 200);
}

#[test]
fn bodies_in_flight_are_bounded() {
    let upstream = Upstream::json("{}");
    let limits = Limits { bodies_in_flight: 20, ..Limits::default() };
    let gate = limited(&upstream, Event::PreInference, limits);
    let body = r#"{"model":"m","messages":[]}"#;
    assert_eq!(gate.ask(post("/api/chat", body)).status, 503);
    assert!(gate.handle.metrics().contains("gatehook_held_body_bytes 0"), "the room is given back");
}

#[test]
fn a_body_takes_the_room_that_reading_it_takes() {
    let upstream = Upstream::json("{}");
    let gate = limited(&upstream, Event::PreInference, Limits { bodies_in_flight: 10_000, ..Limits::default() });
    let text = json!({"model": "m", "messages": [], "x": "a".repeat(5_000)}).to_string();
    assert_eq!(gate.ask(post("/api/chat", &text)).status, 200);
    let values = json!({"model": "m", "messages": [], "x": vec![0; 100]}).to_string();
    assert_eq!(gate.ask(post("/api/chat", &values)).status, 503, "a hundred times its length");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &[b' '; 20_000]).unwrap();
    let packed = encoder.finish().unwrap();
    let length = packed.len();
    let head = format!(
        "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
    );
    assert_eq!(gate.ask([head.as_bytes(), &packed].concat()).status, 503, "once it is unpacked");
    assert!(gate.handle.metrics().contains("gatehook_held_body_bytes 0"), "the room is given back");
}

#[test]
fn an_answer_that_a_hook_must_see_is_bounded() {
    let upstream = Upstream::answering(response(200, "application/json", &"x".repeat(101)));
    let gate = limited(&upstream, Event::PostInference, Limits { response_body: 100, ..Limits::default() });
    assert_eq!(gate.ask(post("/api/chat", r#"{"model":"m","messages":[]}"#)).status, 502);
}

#[test]
fn a_body_of_another_type_that_is_no_json_is_refused_as_such() {
    let upstream = Upstream::json("{}");
    let gate = limited(&upstream, Event::PreInference, Limits::default());
    for (kind, body, status) in [
        ("multipart/form-data; boundary=x", "--x\r\n", 415),
        ("text/plain", "hello", 415),
        ("application/json", "hello", 400),
        ("application/json; charset=utf-16", "{}", 415),
        ("text/plain", r#"{"model":"m","messages":[]}"#, 200),
    ] {
        let request = post_with("/api/chat", &format!("Content-Type: {kind}\r\n"), body);
        assert_eq!(gate.ask(request).status, status, "{kind} {body}");
    }
}

#[test]
fn an_encoding_that_cannot_be_read_is_refused() {
    let upstream = Upstream::json("{}");
    let gate = limited(&upstream, Event::PreInference, Limits::default());
    for (header, status) in [
        ("Content-Encoding: compress\r\n", 415),
        ("Content-Encoding: gzip, br\r\n", 415),
        ("Content-Encoding: gzip\r\nContent-Encoding: br\r\n", 415),
        ("Content-Encoding: gzip\r\n", 400),
        ("Content-Type: text/plain\r\nContent-Type: application/json\r\n", 415),
    ] {
        assert_eq!(gate.ask(post_with("/api/chat", header, "{}")).status, status, "{header}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn a_dead_upstream_is_said_on_every_wire() {
    let gate = Gate::start(config(&nowhere()));
    for path in ["/api/chat", "/v1/chat/completions", "/v1/messages"] {
        let reply = gate.ask(post(path, "{}"));
        assert_eq!(reply.status, 502, "{path}");
        assert!(error_of(&reply, path).contains("cannot be reached"), "{path}: {}", reply.text());
    }
}

#[test]
fn an_upstream_that_breaks_off_before_its_answer_is_a_bad_one() {
    for answer in ["", "HTTP/1.1 200", "nonsense\r\n\r\n"] {
        let upstream = Upstream::new(move |_, wire| {
            wire.send(answer);
            false
        });
        let reply = Gate::before(&upstream).ask(post("/v1/messages", "{}"));
        assert_eq!(reply.status, 502, "{answer:?}");
        assert_eq!(reply.json()["error"]["type"], "api_error", "{answer:?}");
    }
}

#[test]
fn an_upstream_that_breaks_off_within_its_answer_is_no_whole_answer() {
    let upstream = Upstream::new(|_, wire| {
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        false
    });
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    assert!(client.reply().is_none(), "the response is not ended as if it were whole");
}

#[test]
fn an_upstream_that_does_not_answer_times_out() {
    let upstream = Upstream::new(|_, wire| !wire.is_closed());
    let limits = Limits { first_byte: Duration::from_millis(50), ..Limits::default() };
    let reply = Gate::start(Config { limits, ..config(&upstream.url()) }).ask(post("/v1/messages", "{}"));
    assert_eq!(reply.status, 504);
    assert_eq!(reply.json()["error"]["type"], "timeout_error");
}

#[test]
fn an_upstream_that_falls_silent_is_given_up() {
    let upstream = Upstream::new(|_, wire| {
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        !wire.is_closed()
    });
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    let gate = Gate::start(Config { limits, ..config(&upstream.url()) });
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    assert!(client.reply().is_none());
}

#[test]
fn a_request_that_comes_back_is_a_loop() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    gate.ask(get("/"));
    let via = upstream.seen().header("via").unwrap().to_owned();
    for via in [via.clone(), format!("1.1 other, {via}"), format!("1.0 x\r\nVia: {via}")] {
        let reply = gate.ask(post_with("/api/chat", &format!("Via: {via}\r\n"), "{}"));
        assert_eq!(reply.status, 508, "{via}");
    }
    assert_eq!(gate.ask(post_with("/api/chat", "Via: 1.1 gatehook-0000\r\n", "{}")).status, 200, "another gateway");
}

#[test]
fn a_gateway_that_is_its_own_upstream_answers() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut own = config(&format!("http://{free}"));
    own.listen.address = free;
    assert_eq!(Gate::start(own).ask(post("/v1/messages", "{}")).status, 508);
}

#[test]
fn a_head_that_comes_slowly_is_not_waited_for() {
    let upstream = Upstream::json("{}");
    let limits = Limits { client_head: Duration::from_millis(50), ..Limits::default() };
    let gate = Gate::start(Config { limits, ..config(&upstream.url()) });
    let mut client = gate.connect();
    client.send("POST /api/chat HTTP/1.1\r\nHost: loc");
    assert!(client.is_closed());
}

#[test]
fn a_kept_connection_is_closed_when_nothing_comes() {
    let upstream = Upstream::json("{}");
    let limits = Limits { client_keep_alive: Duration::from_millis(50), ..Limits::default() };
    let gate = Gate::start(Config { limits, ..config(&upstream.url()) });
    let mut client = gate.connect();
    assert_eq!(client.ask(get("/")).status, 200);
    assert!(client.is_closed());
}

#[test]
fn a_body_that_comes_slowly_is_not_waited_for() {
    let upstream = Upstream::json("{}");
    let gate = limited(&upstream, Event::PreInference, Limits { idle: Duration::from_millis(50), ..Limits::default() });
    let request = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{";
    assert_eq!(gate.ask(request).status, 408);
}

#[test]
fn a_request_that_two_servers_would_frame_differently_is_refused() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    for headers in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let request = format!("POST /api/chat HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n0\r\n\r\n");
        assert_eq!(gate.ask(request).status, 400, "{headers}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn nothing_is_read_behind_a_chunked_body() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    let mut client: Wire = gate.connect();
    let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send(format!(
        "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n{smuggled}",
        smuggled.len()
    ));
    assert_eq!(client.reply().expect("a response").header("connection"), Some("close"));
    assert!(client.is_closed());
    let seen = upstream.seen();
    assert_eq!((seen.line(), seen.header("content-length")), ("POST /api/chat HTTP/1.1", None));
    assert!(upstream.saw_nothing());
}

#[test]
fn too_large_a_head_is_refused() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    let reply = gate.ask(format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(70_000)));
    assert_eq!(reply.status, 431);
}

#[test]
fn a_client_that_stops_reading_is_cut_and_the_upstream_with_it() {
    let (sender, ended) = std::sync::mpsc::channel();
    let upstream = Upstream::new(move |_, wire| {
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n");
        while std::io::Write::write_all(&mut wire.stream, &[0; 65536]).is_ok() {}
        let _ = sender.send(());
        false
    });
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    let gate = Gate::start(Config { limits, ..config(&upstream.url()) });
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    ended.recv_timeout(Duration::from_secs(20)).expect("the upstream's connection is closed");
}
