//! Starting, changing and stopping a gateway; what it says of itself.

use std::time::Duration;

use gatehook_engine::events::{Event, Permission};
use gatehook_gateway::config::{Door, UpstreamConfig, UpstreamKind};
use gatehook_gateway::{Config, Gateway, StartError};

use crate::support::{Gate, Upstream, config, get, guard, hook, post, says};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn a_gateway_that_stops_lets_requests_finish() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::new(move |_, wire| {
        wait.lock().unwrap().recv().unwrap();
        wire.send(crate::support::response(200, "text/plain", "done"));
        true
    });
    let gate = Gate::before(&upstream);
    let (mut busy, mut idle) = (gate.connect(), gate.connect());
    busy.send(post("/api/chat", "{}"));
    upstream.seen();
    let addr = gate.handle.addr;
    let stopping = std::thread::spawn(move || block_on(gate.handle.shutdown(Duration::from_secs(20))));
    assert!(idle.is_closed(), "an idle connection is closed at once");
    assert!(std::net::TcpStream::connect(addr).is_err(), "nothing more is accepted");
    go.send(()).unwrap();
    let reply = busy.reply().unwrap();
    assert_eq!((reply.text().as_str(), reply.header("connection")), ("done", Some("close")));
    stopping.join().unwrap();
}

#[test]
fn what_does_not_finish_is_cut_at_the_end_of_the_grace_period() {
    let upstream = Upstream::new(|_, wire| !wire.is_closed());
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    upstream.seen();
    block_on(gate.handle.shutdown(Duration::from_millis(20)));
    assert!(client.is_closed());
}

#[test]
fn a_changed_configuration_holds_for_the_next_request_of_an_open_connection() {
    let (old, new) = (Upstream::json("old"), Upstream::json("new"));
    let gate = Gate::before(&old);
    let mut client = gate.connect();
    assert_eq!(client.ask(get("/")).text(), "old");
    gate.handle.reload(&config(&new.url())).unwrap();
    assert_eq!(client.ask(get("/")).text(), "new");
    let deny = guard(vec![hook(Event::PreInference, |_| Ok(Some(says(Permission::Deny))))]);
    gate.handle.reload(&Config { guard: deny, ..config(&new.url()) }).unwrap();
    let chat = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(client.ask(post("/api/chat", chat)).status, 400);
}

#[test]
fn a_wrong_configuration_is_refused_and_the_old_one_stays() {
    let upstream = Upstream::json("old");
    let gate = Gate::before(&upstream);
    let mut elsewhere = config(&upstream.url());
    elsewhere.listen.address = "127.0.0.1:1".parse().unwrap();
    let wrong =
        [config("ftp://x/"), config("http://me:secret@x/"), Config { upstreams: vec![], ..config("") }, elsewhere];
    for config in &wrong {
        let error = gate.handle.reload(config).expect_err("refused").to_string();
        assert!(!error.contains("secret"), "{error}");
    }
    assert_eq!(gate.ask(get("/")).text(), "old");
    assert!(gate.handle.metrics().contains(&format!("gatehook_reloads_refused_total {}", wrong.len())));
}

#[test]
fn two_gateways_do_not_share_an_address() {
    let first = Gate::start(config("http://127.0.0.1:1"));
    let mut second = config("http://127.0.0.1:1");
    second.listen.address = first.handle.addr;
    assert!(matches!(Gateway::start(second), Err(StartError::Listen { .. })));
}

#[test]
fn several_threads_serve_one_address() {
    let upstream = Upstream::json("{}");
    let gate = Gate::start(Config { workers: 3, ..config(&upstream.url()) });
    for _ in 0..30 {
        assert_eq!(gate.ask(get("/")).status, 200);
    }
    assert!(gate.handle.metrics().contains("gatehook_requests_total{route=\"other\",status=\"2xx\"} 30"));
}

#[test]
fn health_and_metrics_are_the_gateways_own() {
    let upstream = Upstream::json("{}");
    let gate = Gate::start(Config { management: Door::Closed, ..config(&upstream.url()) });
    let health = gate.ask(get("/healthz"));
    assert_eq!((health.status, health.text().as_str()), (200, "ok\n"));
    gate.ask(post("/v1/messages", "{}"));
    let metrics = gate.ask(get("/metrics"));
    for line in [
        "gatehook_requests_total{route=\"/v1/messages\",status=\"2xx\"} 1",
        "gatehook_upstream_first_byte_seconds_count",
        "# EOF",
    ] {
        assert!(metrics.text().contains(line), "{line} in {}", metrics.text());
    }
    assert_eq!(upstream.seen().line(), "POST /v1/messages HTTP/1.1");
}

#[test]
fn verdicts_are_counted_by_hook() {
    let upstream = Upstream::json("{}");
    let gate = Gate::guarded(&upstream, Event::PreInference, |_| Ok(Some(says(Permission::Deny))));
    gate.ask(post("/api/chat", r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#));
    let metrics = gate.handle.metrics();
    let line = "gatehook_verdicts_total{event=\"pre_inference\",hook=\"hook0\",verb=\"deny\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn a_script_answers_in_the_place_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers.jsonl");
    let script = r#"{"route":"/v1/messages","match":"weather","status":429,"headers":{"retry-after":"7"},"body":{"a":1}}
        {"route":"/v1/chat/completions","sse":[{"x":1},"[DONE]"]}
        {"route":"/api/chat","chunks":["{}\n"],"break":true}"#;
    std::fs::write(&file, script).unwrap();
    let gate = Gate::start(config(&format!("replay:{}", file.display())));
    let weather = gate.ask(post("/v1/messages", "the weather"));
    assert_eq!((weather.status, weather.header("retry-after"), weather.text().as_str()), (429, Some("7"), "{\"a\":1}"));
    assert_eq!(gate.ask(post("/v1/messages", "else")).status, 404);
    assert_eq!(gate.ask(post("/v1/chat/completions", "{}")).text(), "data: {\"x\":1}\n\ndata: [DONE]\n\n");
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    assert!(client.reply().is_none(), "the script breaks off");
}

#[test]
fn without_a_script_the_last_message_comes_back_on_every_route() {
    let kinds = [UpstreamKind::Ollama, UpstreamKind::OpenAi];
    for kind in kinds {
        let upstreams = vec![UpstreamConfig::new("echo", kind, "replay:")];
        let gate = Gate::start(Config { upstreams, ..config("") });
        for (path, body) in [
            ("/api/chat", r#"{"model":"m","messages":[{"role":"user","content":"ping pong"}],"stream":STREAM}"#),
            ("/api/generate", r#"{"model":"m","prompt":"ping pong","stream":STREAM}"#),
            (
                "/v1/chat/completions",
                r#"{"model":"m","messages":[{"role":"user","content":"ping pong"}],"stream":STREAM}"#,
            ),
            ("/v1/completions", r#"{"model":"m","prompt":"ping pong","stream":STREAM}"#),
            ("/v1/responses", r#"{"model":"m","input":"ping pong","stream":STREAM}"#),
            (
                "/v1/messages",
                r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"ping pong"}],"stream":STREAM}"#,
            ),
        ] {
            for stream in ["false", "true"] {
                let reply = gate.ask(post(path, &body.replace("STREAM", stream)));
                assert_eq!(reply.status, 200, "{path} {stream}: {}", reply.text());
                assert!(reply.text().contains("pong"), "{path} {stream}: {}", reply.text());
            }
        }
    }
}
