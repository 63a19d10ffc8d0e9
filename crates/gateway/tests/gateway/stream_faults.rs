//! Streams that go wrong: what the client is told, and that nothing is left running.

use std::io::{ErrorKind, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use gatehook_engine::events::Event;
use gatehook_gateway::Config;
use gatehook_gateway::config::Limits;

use crate::feed::{Coming, Feed, Feeds, NDJSON};
use crate::frames::{ROUTES, Said, frames, heard, kind, request, stream};
use crate::streams::{SCAN, guarded, webhook};
use crate::support::{Gate, Upstream, Wire, config, policy, response};

/// What goes wrong with an upstream in mid-stream, and the status of an answer that has not begun by then.
type Fault = (&'static str, fn(&mut Feed, &str), u16);

const FAULTS: [Fault; 5] = [
    ("breaks off within a frame", |feed, next| feed.send(&next.as_bytes()[..next.len() / 2]), 502),
    ("breaks off between frames", |_, _| {}, 502),
    ("says what is no JSON", |feed, next| feed.send(next.replace("\":", "\";")), 502),
    ("says what is no UTF-8", |feed, next| feed.send(bad(next)), 502),
    ("says a key twice", |feed, next| feed.send(next.replacen('{', "{\"id\":1,\"id\":2,", 1)), 502),
];

/// A frame with a byte in it that is no character.
fn bad(frame: &str) -> Vec<u8> {
    let at = frame.find("world").unwrap();
    let mut bytes = frame.as_bytes().to_vec();
    bytes[at] = 0xff;
    bytes
}

#[test]
fn an_upstream_that_fails_in_mid_stream_is_an_error_of_the_protocol() {
    for route in ROUTES {
        for (name, fault, _) in FAULTS {
            let upstream = Feeds::new();
            let gate = guarded(&upstream.url(), SCAN);
            let client = gate.begin(request(route));
            let mut feed = upstream.begin(kind(route));
            let frames = frames(route, &Said::text(&["Hello, my ", "world "]));
            let cut = frames.iter().position(|frame| frame.contains("world ")).unwrap();
            feed.send(frames[..cut].concat());
            let mut client = Coming::new(client);
            client.until("Hello, ");
            fault(&mut feed, &frames[cut]);
            drop(feed);
            let body = client.whole();
            let heard = heard(route, &body);
            assert!(heard.error && !heard.over, "{route} {name}: {body}");
            assert!("Hello, my ".starts_with(&heard.text), "{route} {name}: {body}");
            gate.comes_to_rest();
        }
    }
}

#[test]
fn an_upstream_that_fails_before_anything_has_left_is_a_plain_error() {
    for route in ROUTES {
        for (name, fault, status) in FAULTS {
            let upstream = Feeds::new();
            let gate = guarded(&upstream.url(), &webhook("http://127.0.0.1:1/", "{mode: buffer}", ""));
            let mut client = gate.begin(request(route));
            let mut feed = upstream.begin(kind(route));
            let frames = frames(route, &Said::text(&["Hello, my ", "world "]));
            let cut = frames.iter().position(|frame| frame.contains("world ")).unwrap();
            feed.send(frames[..cut].concat());
            fault(&mut feed, &frames[cut]);
            drop(feed);
            let reply = client.reply().unwrap();
            assert_eq!(reply.status, status, "{route} {name}: {}", reply.text());
            assert!(!reply.text().contains("Hello"), "{route} {name}");
            gate.comes_to_rest();
        }
    }
}

/// A stream's frames up to a first text, of which something may leave.
fn beginning(route: &str) -> String {
    let mut frames = frames(route, &Said::text(&["Hello, my ", "friend"]));
    frames.truncate(frames.iter().position(|frame| frame.contains("friend")).unwrap());
    frames.concat()
}

fn impatient(upstream: &Feeds) -> Gate {
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    Gate::start(Config { guard: policy(SCAN), limits, ..config(&upstream.url()) })
}

#[test]
fn an_upstream_that_falls_silent_is_given_up() {
    for route in ROUTES {
        let upstream = Feeds::new();
        let gate = impatient(&upstream);
        let mut client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        assert_eq!(client.reply().unwrap().status, 504, "{route}: nothing has left");
        assert!(feed.is_left(), "{route}");

        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        feed.send(beginning(route));
        let body = Coming::new(client).whole();
        assert!(heard(route, &body).error, "{route} {body}");
        assert!(feed.is_left(), "{route}");
        gate.comes_to_rest();
    }
}

#[test]
fn a_stream_that_ends_before_its_end_is_no_whole_answer() {
    for route in ROUTES {
        let upstream = Feeds::new();
        let gate = guarded(&upstream.url(), SCAN);
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        let mut frames = frames(route, &Said::text(&["Hello, my ", "friend"]));
        // With the stop reason all has been said, and some servers end there.
        let last = if kind(route) == NDJSON || route == "/v1/responses" { 1 } else { 2 };
        frames.truncate(frames.len() - last);
        feed.send(frames.concat());
        feed.end();
        let body = Coming::new(client).whole();
        let heard = heard(route, &body);
        assert!(heard.error && !heard.over, "{route} {body}");
    }
}

/// An error of the upstream's own in mid-stream, as each protocol has it, behind so many frames.
fn error_event(route: &str, frames: usize) -> String {
    match route {
        "/api/chat" | "/api/generate" => "{\"error\":\"out of memory\"}\n".to_owned(),
        "/v1/messages" => {
            let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"out of memory"}}"#;
            format!("event: error\ndata: {error}\n\n")
        }
        "/v1/responses" => {
            let rest = r#""code":"x","message":"out of memory","param":null"#;
            format!("event: error\ndata: {{\"type\":\"error\",\"sequence_number\":{frames},{rest}}}\n\n")
        }
        _ => {
            let error = r#"{"error":{"message":"out of memory","type":"server_error","code":500}}"#;
            format!("data: {error}\n\n")
        }
    }
}

#[test]
fn an_upstreams_own_error_passes_as_it_came() {
    for route in ROUTES {
        let upstream = Feeds::new();
        let gate = guarded(&upstream.url(), SCAN);
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        let begin = frames(route, &Said::text(&["Hello, my ", "world "]));
        let cut = begin.iter().position(|frame| frame.contains("world ")).unwrap();
        let error = error_event(route, cut);
        feed.send(begin[..cut].concat() + &error);
        feed.end();
        let body = Coming::new(client).whole();
        assert!(body.ends_with(&error), "{route} {body}");
        assert_eq!(body.matches("out of memory").count(), 1, "{route} {body}");
        assert!(!heard(route, &body).over, "{route} {body}");
        gate.comes_to_rest();
    }
}

#[test]
fn a_client_that_leaves_in_mid_stream_ends_the_upstreams_work() {
    for route in ROUTES {
        let upstream = Feeds::new();
        let gate = guarded(&upstream.url(), SCAN);
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        feed.send(beginning(route));
        drop(Coming::new(client));
        assert!(feed.is_left(), "{route}");
        gate.comes_to_rest();
    }
}

#[test]
fn a_client_that_leaves_while_a_hook_judges_ends_the_hook() {
    for (route, begun) in ROUTES.into_iter().flat_map(|route| [(route, false), (route, true)]) {
        let (upstream, hook) = (Feeds::new(), Feeds::new());
        let mode = if begun { "{mode: window, size: 4}" } else { "{mode: buffer}" };
        let gate = guarded(&upstream.url(), &webhook(&hook.url(), mode, ""));
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        feed.send(stream(route, &Said::text(&["Hello, my ", "friend"])));
        feed.end();
        let mut asked = hook.next();
        drop(client);
        assert!(asked.wire.is_closed(), "{route} {begun}");
        gate.comes_to_rest();
    }
}

#[test]
fn a_webhook_that_hangs_in_mid_stream_ends_the_stream_or_lets_it_pass() {
    std::thread::scope(|scope| {
        for (route, passes) in ROUTES.into_iter().flat_map(|route| [(route, false), (route, true)]) {
            scope.spawn(move || hangs(route, passes));
        }
    });
}

fn hangs(route: &str, passes: bool) {
    let (upstream, hook) = (Feeds::new(), Feeds::new());
    let on_error = if passes { ", on_error: warn" } else { ", on_error: block" };
    let hooks = webhook(&hook.url(), "{mode: window, size: 4}", on_error).replace("20s", "500ms");
    let gate = guarded(&upstream.url(), &hooks);
    let client = gate.begin(request(route));
    let mut feed = upstream.begin(kind(route));
    let frames = frames(route, &Said::text(&["Hello, my ", "friend"]));
    let cut = frames.iter().position(|frame| frame.contains("friend")).unwrap();
    feed.send(frames[..cut].concat());
    hook.next().answer(r#"{"permission":"allow"}"#);
    let mut client = Coming::new(client);
    client.until("Hello, ");
    feed.send(frames[cut..].concat());
    let mut hanging = hook.next();
    let body = client.rest();
    assert!(hanging.is_left(), "{route}");
    if passes {
        assert_eq!(body, frames.concat(), "{route}");
    } else {
        let heard = heard(route, &body);
        assert!("Hello, my ".starts_with(&heard.text), "{route} {body}");
        assert!(body.contains(r#""permission":"unavailable""#), "{route} {body}");
        assert!(feed.is_left(), "{route}");
    }
    drop(feed);
    gate.comes_to_rest();
}

#[test]
fn what_is_held_is_bounded() {
    let route = "/v1/chat/completions";
    let sent = stream(route, &Said::text(&["word "; 2000]));
    for (limits, status) in [
        (Limits { response_body: 10_000, ..Limits::default() }, 502),
        (Limits { bodies_in_flight: 20_000, ..Limits::default() }, 503),
    ] {
        let upstream = Upstream::answering(response(200, kind(route), &sent));
        let guard = policy(&webhook("http://127.0.0.1:1/", "{mode: buffer}", ""));
        let gate = Gate::start(Config { guard, limits, ..config(&upstream.url()) });
        assert_eq!(gate.ask(request(route)).status, status);
        gate.comes_to_rest();
    }
}

#[test]
fn what_leaves_at_once_is_not_bounded() {
    let route = "/api/chat";
    let sent = stream(route, &Said::text(&[&*"word ".repeat(1000); 800]));
    let upstream = Upstream::answering(response(200, kind(route), &sent));
    let limits = Limits { response_body: 1 << 20, bodies_in_flight: 1 << 20, ..Limits::default() };
    assert!(sent.len() > 3 << 20);
    let gate = Gate::start(Config { guard: policy(SCAN), limits, ..config(&upstream.url()) });
    assert_eq!(gate.ask(request(route)).text(), sent);
}

/// A socket whose buffers are small, so that it fills early.
fn narrow(wire: &Wire) {
    let socket = socket2::SockRef::from(&wire.stream);
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.set_send_buffer_size(16 * 1024).unwrap();
}

#[test]
fn a_client_that_does_not_read_slows_the_upstream() {
    let route = "/api/chat";
    let upstream = Feeds::new();
    let gate = guarded(&upstream.url(), SCAN);
    let client = gate.connect();
    narrow(&client);
    let mut client = client;
    client.send(request(route));
    let mut feed = upstream.next();
    narrow(&feed.wire);
    feed.begin(kind(route), "");
    let piece = frames(route, &Said::text(&["word ".repeat(2000).as_str()]))[0].clone();
    let chunk = format!("{:x}\r\n{piece}\r\n", piece.len()).into_bytes();
    feed.wire.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut sent, mut at) = (0, 0);
    // Far more than sockets and gateway may hold.
    while sent < 64 << 20 {
        match feed.wire.stream.write(&chunk[at..]) {
            Ok(written) => (sent, at) = (sent + written, (at + written) % chunk.len()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent < 16 << 20, "{sent} bytes were taken from the upstream although nobody reads them");
    assert!(gate.measured("gatehook_held_body_bytes") < 1 << 20);
    drop(client);
    assert!(feed.is_left());
    gate.comes_to_rest();
}

#[test]
fn two_hundred_streams_run_side_by_side() {
    const STREAMS: usize = 200;
    let upstream = Feeds::new();
    let gate = guarded(&upstream.url(), SCAN);
    let mut open: Vec<_> = (0..STREAMS)
        .map(|number| {
            let route = ROUTES[number % ROUTES.len()];
            let client = gate.begin(request(route));
            (route, client, upstream.begin(kind(route)))
        })
        .collect();
    let said = Said::text(&["Hello, my ", "friend. "]);
    let first = |route| frames(route, &said).iter().position(|frame| frame.contains("friend")).unwrap();
    for (route, _, feed) in &mut open {
        feed.send(frames(route, &said)[..first(route)].concat());
    }
    let mut open: Vec<_> = open.into_iter().map(|(route, client, feed)| (route, Coming::new(client), feed)).collect();
    assert_eq!(gate.measured("gatehook_streams_open"), STREAMS);
    for (route, _, feed) in &mut open {
        feed.send(frames(route, &said)[first(route)..].concat());
    }
    for (route, client, feed) in open {
        feed.end();
        assert_eq!(client.whole(), stream(route, &said), "{route}");
    }
    gate.comes_to_rest();
}

#[test]
fn a_large_answer_is_judged_like_a_small_one() {
    for route in ["/api/chat", "/v1/messages"] {
        let long = "word ".repeat(80_000);
        let upstream = Upstream::answering(response(200, kind(route), &stream(route, &Said::text(&[&long, "falcon"]))));
        let hooks = "hooks: {post_inference: [{type: builtin, command: block_patterns, args: [falcon], stream: {mode: buffer}}]}";
        let gate = guarded(&upstream.url(), hooks);
        assert_eq!(gate.ask(request(route)).status, 400, "{route}");
        gate.comes_to_rest();
    }
}

#[test]
fn a_large_answer_is_judged_off_the_network_thread() {
    let route = "/api/chat";
    let long = stream(route, &Said::text(&["word ".repeat(80_000).as_str()]));
    let upstream = Upstream::answering(response(200, kind(route), &long));
    let ((begun, begins), (go, wait)) = (channel(), channel());
    let wait = Mutex::new(wait);
    let gate = Gate::guarded(&upstream, Event::PostInference, move |_| {
        begun.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        Ok(None)
    });
    let mut client = gate.begin(request(route));
    begins.recv().unwrap();
    assert!(client.is_silent(), "the only network thread answers others meanwhile");
    go.send(()).unwrap();
    assert_eq!(client.reply().unwrap().text(), long);
}
