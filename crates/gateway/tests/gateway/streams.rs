//! Streamed answers that hooks look at, as the client gets them.

use std::time::Duration;

use gatehook_gateway::Config;
use gatehook_gateway::config::Streams;
use gatehook_inference::Ending;

use crate::feed::{Coming, Feeds, SSE};
use crate::frames::{ROUTES, Said, frames, heard, kind, request, stream};
use crate::support::{Gate, Upstream, config, policy, response};
use crate::verdicts::note;

/// Scans: holds what may still become a secret, and nothing else.
pub(crate) const SCAN: &str = "hooks: {post_inference: [{type: builtin, command: redact_secrets}]}";
/// Denies an answer with this word.
pub(crate) const DENY: &str = "hooks: {post_inference: [{type: builtin, command: block_patterns, args: [falcon]}]}";

pub(crate) fn guarded(url: &str, hooks: &str) -> Gate {
    Gate::start(Config { guard: policy(hooks), ..config(url) })
}

fn sent(url: &str, hooks: &str, streams: Streams) -> Gate {
    Gate::start(Config { guard: policy(hooks), streams, ..config(url) })
}

/// A webhook after the call, in this mode of streams.
pub(crate) fn webhook(url: &str, stream: &str, more: &str) -> String {
    format!(
        "hooks: {{post_inference: [{{type: webhook, url: '{url}', contract: ollama, stream: {stream}, timeout: 20s{more}}}]}}"
    )
}

#[test]
fn what_no_hook_changes_leaves_as_it_came() {
    for route in ROUTES {
        let sent = stream(route, &Said::text(&["Hello, ", "wörld", " and ", "so on.\n"]));
        let allow = Upstream::json(r#"{"permission":"allow"}"#);
        let modes = ["{mode: buffer}", "{mode: window, size: 4}", "{mode: observe}"];
        let policies = modes.map(|mode| webhook(&allow.url(), mode, ""));
        for hooks in policies.iter().map(String::as_str).chain([SCAN, DENY]) {
            let upstream = Upstream::answering(response(200, kind(route), &sent));
            let gate = guarded(&upstream.url(), hooks);
            let reply = gate.ask(request(route));
            assert_eq!((reply.status, reply.text()), (200, sent.clone()), "{route} {hooks}");
            assert_eq!(reply.header("content-type"), Some(kind(route)), "{route}");
            assert_eq!(reply.header("content-length"), None, "{route}: nobody knows the length beforehand");
            gate.comes_to_rest();
        }
    }
}

#[test]
fn what_is_settled_leaves_at_once() {
    for route in ROUTES {
        let upstream = Feeds::new();
        let gate = guarded(&upstream.url(), SCAN);
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        let said = Said::text(&["Hello, ", "my ", "friend, ", "good ", "bye, ", "then. "]);
        let frames = frames(route, &said);
        let first = frames.iter().position(|frame| frame.contains("Hello")).unwrap();
        feed.send(frames[..=first].concat());
        let mut client = Coming::new(client);
        client.until("Hello");
        for frame in &frames[first + 1..] {
            feed.send(frame);
            client.until(frame);
        }
        feed.end();
        assert_eq!(client.whole(), frames.concat(), "{route}");
    }
}

#[test]
fn a_buffered_answer_waits_for_its_verdict() {
    for route in ROUTES {
        let (upstream, hook) = (Feeds::new(), Feeds::new());
        let gate = guarded(&upstream.url(), &webhook(&hook.url(), "{mode: buffer}", ""));
        let mut client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        let sent = stream(route, &Said::text(&["Hello, ", "world"]));
        feed.send(&sent);
        feed.end();
        let mut asked = hook.next();
        let shown: serde_json::Value = serde_json::from_slice(&asked.seen.body).unwrap();
        assert_eq!((&shown["output_text"], &shown["segment"]), (&"Hello, world".into(), &().into()), "{route}");
        assert!(client.is_silent(), "{route}");
        asked.answer(r#"{"permission":"allow"}"#);
        assert_eq!(client.reply().unwrap().text(), sent, "{route}");
    }
}

#[test]
fn the_end_of_a_stream_does_not_wait_for_one_that_only_looks_on() {
    for route in ROUTES {
        let (upstream, hook) = (Feeds::new(), Feeds::new());
        let gate = guarded(&upstream.url(), &webhook(&hook.url(), "{mode: observe}", ""));
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        let sent = stream(route, &Said::text(&["Hello, ", "world"]));
        feed.send(&sent);
        feed.end();
        assert_eq!(Coming::new(client).whole(), sent, "{route}");
        let mut asked = hook.next();
        let shown: serde_json::Value = serde_json::from_slice(&asked.seen.body).unwrap();
        assert_eq!(shown["output_text"], "Hello, world", "{route}");
        asked.answer(r#"{"permission":"deny"}"#);
        gate.comes_to_rest();
    }
}

#[test]
fn an_audit_has_an_answer_when_the_client_has_its_end() {
    let folder = tempfile::tempdir().unwrap();
    for (number, route) in ROUTES.into_iter().enumerate() {
        let file = folder.path().join(number.to_string());
        let sent = stream(route, &Said::text(&["Hello, ", "world"]));
        let upstream = Upstream::answering(response(200, kind(route), &sent));
        let audit = format!("{{type: builtin, command: audit_log, args: ['{}']}}", file.display());
        let gate = guarded(&upstream.url(), &format!("hooks: {{post_inference: [{audit}]}}"));
        assert_eq!(gate.ask(request(route)).text(), sent, "{route}");
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written.contains("post_inference") && written.contains(route), "{route}: {written}");
    }
}

#[test]
fn a_denial_before_the_first_text_is_a_plain_refusal() {
    for route in ROUTES {
        let upstream = Feeds::new();
        let gate = guarded(&upstream.url(), DENY);
        let mut client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        for frame in frames(route, &Said::text(&["falcon", " and what follows"])) {
            if !feed.offer(frame) {
                break;
            }
        }
        let reply = client.reply().unwrap();
        assert_eq!((reply.status, reply.header("content-type")), (400, Some("application/json")), "{route}");
        assert!(route == "/v1/messages" || note(&reply)["permission"] == "deny", "{route} {}", reply.text());
        assert!(!reply.text().contains("falcon"), "{route}");
        assert!(feed.is_left(), "{route}");
        gate.comes_to_rest();
        assert_eq!(gate.measured("gatehook_streams_blocked_total"), 0, "{route}");
    }
}

#[test]
fn a_denial_in_mid_stream_ends_it_with_what_was_released() {
    for route in ROUTES {
        for (on_block, filtered) in [(Ending::Refusal, false), (Ending::ContentFilter, true)] {
            let upstream = Feeds::new();
            let streams = Streams { on_block, ..Streams::default() };
            let gate = sent(&upstream.url(), DENY, streams);
            let client = gate.begin(request(route));
            let mut feed = upstream.begin(kind(route));
            let frames = frames(route, &Said::text(&["Hello, ", "my ", "fal", "con", " and what follows"]));
            let hidden = frames.iter().position(|frame| frame.contains("\"con\"")).unwrap();
            feed.send(frames[..hidden].concat());
            let mut client = Coming::new(client);
            client.until("my ");
            feed.send(frames[hidden..].concat());
            assert!(feed.is_left(), "{route}: the upstream's work is cancelled");
            let body = client.whole();
            let heard = heard(route, &body);
            assert_eq!(heard.text, "Hello, my ", "{route} {body}");
            assert!(heard.over && !heard.error, "{route} {body}");
            let reason = match (route, filtered) {
                ("/api/chat" | "/api/generate", _) => "content_filter",
                ("/v1/responses", false) => "completed",
                ("/v1/responses", true) => "incomplete",
                ("/v1/messages", _) => "refusal",
                (_, false) => "stop",
                (_, true) => "content_filter",
            };
            assert_eq!(heard.reason, reason, "{route} {body}");
            assert!(body.contains(r#""permission":"deny""#), "{route} {body}");
            gate.comes_to_rest();
            assert_eq!(gate.measured("gatehook_streams_blocked_total"), 1, "{route}");
        }
    }
}

#[test]
fn the_status_line_waits_no_longer_than_it_may() {
    for route in ROUTES {
        let (upstream, hook) = (Feeds::new(), Feeds::new());
        let streams =
            Streams { commit_after: Duration::ZERO, keep_alive: Duration::from_millis(1), ..Streams::default() };
        let gate = sent(&upstream.url(), &webhook(&hook.url(), "{mode: buffer}", ""), streams);
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        let mut client = Coming::new(client);
        assert_eq!(client.status(), 200, "{route}");
        if kind(route) == SSE {
            client.until("ping");
        }
        feed.send(stream(route, &Said::text(&["Hello, ", "world"])));
        feed.end();
        let mut asked = hook.next();
        if kind(route) == SSE {
            client.forget();
            client.until("ping");
        }
        asked.answer(r#"{"permission":"deny"}"#);
        let body = client.whole();
        let heard = heard(route, &body);
        assert_eq!((heard.text.as_str(), heard.over, heard.error), ("", true, false), "{route} {body}");
    }
}

#[test]
fn a_client_of_a_native_route_gets_no_signs_of_life() {
    for route in ["/api/chat", "/api/generate"] {
        let upstream = Feeds::new();
        let streams = Streams { keep_alive: Duration::from_millis(1), ..Streams::default() };
        let gate = sent(&upstream.url(), SCAN, streams);
        let client = gate.begin(request(route));
        let mut feed = upstream.begin(kind(route));
        let frames = frames(route, &Said::text(&["Hello, ", "world"]));
        feed.send(&frames[0]);
        let mut client = Coming::new(client);
        client.until(&frames[0]);
        assert!(client.wire.is_silent());
        feed.send(frames[1..].concat());
        feed.end();
        assert_eq!(client.whole(), frames.concat(), "{route}");
    }
}

#[test]
fn an_answer_that_comes_whole_is_judged_whole() {
    let whole = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"the falcon"},"finish_reason":"stop"}]}"#;
    let upstream = Upstream::json(whole);
    let gate = guarded(&upstream.url(), DENY);
    assert_eq!(gate.ask(request("/v1/chat/completions")).status, 400);
}

#[test]
fn a_stream_that_nobody_asked_for_is_guarded_like_any_other() {
    for route in ROUTES {
        let upstream =
            Upstream::answering(response(200, kind(route), &stream(route, &Said::text(&["the ", "falcon"]))));
        let gate = guarded(&upstream.url(), DENY);
        let asked = String::from_utf8(request(route)).unwrap();
        let reply = gate.ask(asked.replace("\"stream\":true", "\"stream\":  []").replace("  []", "null"));
        assert!(!reply.text().contains("falcon"), "{route} {}", reply.text());
    }
}

#[test]
fn a_stream_in_another_routes_format_does_not_pass_a_hook_unseen() {
    for (route, other) in [("/api/chat", "/v1/chat/completions"), ("/v1/messages", "/api/generate")] {
        let upstream = Upstream::answering(response(200, kind(other), &stream(other, &Said::text(&["the falcon"]))));
        let reply = guarded(&upstream.url(), DENY).ask(request(route));
        assert_eq!(reply.status, 502, "{route}");
        assert!(!reply.text().contains("falcon"), "{route}");
    }
}

#[test]
fn an_upstream_is_asked_for_a_stream_that_hooks_can_read() {
    let upstream = Upstream::answering(response(200, SSE, &stream("/v1/messages", &Said::text(&["hi"]))));
    let gate = guarded(&upstream.url(), DENY);
    let asked = String::from_utf8(request("/v1/messages")).unwrap();
    gate.ask(asked.replacen("Host:", "Accept-Encoding: gzip, br\r\nHost:", 1));
    assert_eq!(upstream.seen().header("accept-encoding"), Some("identity"));
}

#[test]
fn a_stream_that_is_compressed_all_the_same_is_read_and_judged() {
    for route in ROUTES {
        for (text, passes) in [("Hello, world", true), ("the falcon", false)] {
            let sent = stream(route, &Said::text(&[text]));
            let packed = gzip(sent.as_bytes());
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                kind(route),
                packed.len()
            );
            let upstream = Upstream::answering([head.as_bytes(), &packed].concat());
            let reply = guarded(&upstream.url(), DENY).ask(request(route));
            assert_eq!(reply.header("content-encoding"), None, "{route}");
            assert!(!reply.text().contains("falcon"), "{route}");
            assert!(!passes || reply.text() == sent, "{route} {}", reply.text());
        }
    }
}

#[test]
fn a_stream_in_an_unknown_encoding_is_not_given_out() {
    let text =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: odd\r\nContent-Length: 3\r\n\r\nabc";
    let upstream = Upstream::answering(text);
    assert_eq!(guarded(&upstream.url(), DENY).ask(request("/v1/messages")).status, 502);
}

#[test]
fn an_upstreams_own_error_passes_whatever_its_type() {
    let upstream = Upstream::answering(response(429, SSE, "data: {\"error\":{\"message\":\"slow down\"}}\n\n"));
    let reply = guarded(&upstream.url(), DENY).ask(request("/v1/chat/completions"));
    assert_eq!((reply.status, reply.text().contains("slow down")), (429, true));
}

#[test]
fn a_connection_whose_stream_came_to_its_end_is_used_again() {
    let route = "/v1/chat/completions";
    let upstream = Upstream::answering(response(200, SSE, &stream(route, &Said::text(&["hi"]))));
    let gate = guarded(&upstream.url(), DENY);
    let mut client = gate.connect();
    for _ in 0..3 {
        assert!(heard(route, &client.ask(request(route)).text()).over);
    }
    assert_eq!(upstream.connections(), 1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
