//! Who may call, from where, and by which paths.

use gatehook_engine::events::{Event, Permission};
use gatehook_gateway::config::{Door, KeyConfig, KeySecret, UpstreamConfig, UpstreamKind};
use gatehook_gateway::{Config, Gateway, StartError};

use crate::support::{Gate, Upstream, config, get, guard, hook, post, post_with, says};

/// `printf %s sesame | sha256sum`
const SESAME: &str = "d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272";

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

/// A gateway whose hook lets everything pass, but could block.
fn watchful(upstream: &Upstream, kind: UpstreamKind, change: impl FnOnce(&mut Config)) -> Gate {
    let mut config = Config {
        guard: guard(vec![hook(Event::PreInference, |_| Ok(Some(says(Permission::Allow))))]),
        upstreams: vec![UpstreamConfig::new("mock", kind, upstream.url())],
        ..config("")
    };
    change(&mut config);
    Gate::start(config)
}

#[test]
fn a_page_whose_name_points_here_cannot_call() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    for (host, status) in [
        ("Host: evil.example\r\n", 403),
        ("Host: 127.0.0.1.evil.example\r\n", 403),
        ("", 403),
        ("Host: localhost\r\nHost: localhost\r\n", 400),
        ("Host: 127.0.0.1:1\r\n", 200),
        ("Host: [::1]\r\n", 200),
        ("Host: my.localhost\r\n", 200),
    ] {
        assert_eq!(gate.ask(format!("GET /api/tags HTTP/1.1\r\n{host}\r\n")).status, status, "{host:?}");
    }
}

#[test]
fn a_page_of_another_origin_cannot_call() {
    let upstream = Upstream::json("{}");
    let mut config = config(&upstream.url());
    config.listen.origins = vec!["https://*.example.org".into()];
    let gate = Gate::start(config);
    for (origin, status) in [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://localhost:3000", 200),
        ("https://chat.example.org", 200),
    ] {
        let reply = gate.ask(post_with("/api/chat", &format!("Origin: {origin}\r\n"), "{}"));
        assert_eq!(reply.status, status, "{origin}");
        let allowed = (status == 200).then_some(origin);
        assert_eq!(reply.header("access-control-allow-origin"), allowed, "{origin}");
    }
    assert_eq!(upstream.seen().header("origin"), None);
}

#[test]
fn a_browser_may_ask_with_anthropics_headers() {
    let upstream = Upstream::json("{}");
    let request = "OPTIONS /v1/messages HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n\
                   Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-api-key\r\n\r\n";
    let reply = Gate::before(&upstream).ask(request);
    assert_eq!(reply.status, 204);
    let allowed = reply.header("access-control-allow-headers").unwrap();
    for name in ["x-api-key", "anthropic-version", "authorization", "content-type"] {
        assert!(allowed.contains(name), "{name} in {allowed}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn what_an_upstream_says_of_browsers_does_not_count() {
    let upstream =
        Upstream::answering("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n");
    let reply = Gate::before(&upstream).ask(post_with("/api/chat", "Origin: http://localhost\r\n", "{}"));
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost"));
    assert_eq!(reply.head.to_lowercase().matches("access-control-allow-origin").count(), 1);
}

#[test]
fn a_key_is_asked_for_and_never_forwarded() {
    let upstream = Upstream::json("{}");
    let keys = vec![KeyConfig { name: "alice".into(), secret: KeySecret::Sha256(SESAME.into()) }];
    let gate = Gate::start(Config { keys, ..config(&upstream.url()) });
    for headers in ["", "Authorization: Bearer wrong\r\n", "X-Api-Key: wrong\r\n", "Authorization: sesame x\r\n"] {
        let reply = gate.ask(post_with("/v1/messages", headers, "{}"));
        assert_eq!(reply.status, 401, "{headers}");
        assert_eq!(reply.json()["error"]["type"], "authentication_error");
    }
    assert!(upstream.saw_nothing());
    for headers in ["Authorization: Bearer sesame\r\n", "X-Api-Key: sesame\r\n"] {
        assert_eq!(gate.ask(post_with("/v1/messages", headers, "{}")).status, 200, "{headers}");
        let seen = upstream.seen();
        assert!(!seen.head.contains("sesame"), "{}", seen.head);
    }
    assert_eq!(gate.ask(get("/healthz")).status, 200, "health needs no key");
    assert_eq!(gate.ask(get("/metrics")).status, 401, "metrics do");
}

#[test]
fn a_credential_for_the_upstream_passes_beside_the_gateways_key() {
    let upstream = Upstream::json("{}");
    let keys = vec![KeyConfig { name: "alice".into(), secret: KeySecret::Sha256(SESAME.into()) }];
    let gate = Gate::start(Config { keys, ..config(&upstream.url()) });
    gate.ask(post_with("/v1/messages", "X-Api-Key: sesame\r\nAuthorization: Bearer upstream\r\n", "{}"));
    let seen = upstream.seen();
    assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (Some("Bearer upstream"), None));
}

#[test]
fn beyond_loopback_a_key_is_needed_or_a_word() {
    let mut open = config("http://127.0.0.1:1");
    open.listen.address = "0.0.0.0:0".parse().unwrap();
    assert!(matches!(Gateway::start(open.clone()), Err(StartError::Open { .. })));
    open.listen.open = true;
    assert!(Gateway::start(open).is_ok());
}

#[test]
fn without_a_hook_that_may_block_every_path_passes() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    for path in ["/completion", "/not/known", "/api//chat", "/a;b", "/v1/batches", "/api%2Fchat"] {
        assert_eq!(gate.ask(post(path, "{}")).status, 200, "{path}");
        assert_eq!(upstream.seen().line(), format!("POST {path} HTTP/1.1"));
    }
}

#[test]
fn lists_and_health_pass_beside_hooks() {
    let upstream = Upstream::json("{}");
    let gate = watchful(&upstream, UpstreamKind::Ollama, |_| {});
    for path in ["/", "/api/tags", "/api/version", "/api/ps", "/v1/models", "/v1/models/hf.co/a/b"] {
        assert_eq!(gate.ask(get(path)).status, 200, "{path}");
    }
    assert_eq!(gate.ask(post("/api/show", "{}")).status, 200);
}

#[test]
fn management_passes_unless_it_is_closed() {
    let upstream = Upstream::json("{}");
    let open = watchful(&upstream, UpstreamKind::Ollama, |_| {});
    let closed = watchful(&upstream, UpstreamKind::Ollama, |config| config.management = Door::Closed);
    let unhooked = Gate::start(Config { management: Door::Closed, ..config(&upstream.url()) });
    for path in ["/api/pull", "/api/push", "/api/create", "/api/copy", "/api/blobs/sha256:0", "//api/pull/"] {
        assert_eq!(open.ask(post(path, "{}")).status, 200, "{path}");
        assert_eq!(closed.ask(post(path, "{}")).status, 403, "{path}");
        assert_eq!(unhooked.ask(post(path, "{}")).status, 403, "{path}");
    }
    assert_eq!(unhooked.ask(post("/anything", "{}")).status, 200);
}

#[test]
fn a_path_that_hooks_cannot_follow_is_shut_beside_hooks() {
    let upstream = Upstream::json("{}");
    let pass = watchful(&upstream, UpstreamKind::OpenAi, |config| config.unknown_paths = Door::Pass);
    for path in ["/completion", "/infill", "/slots/0", "/v1/batches", "/v1/responses/r/cancel", "/v1/messages/batches"]
    {
        let reply = pass.ask(post(path, "{}"));
        assert_eq!(reply.status, 403, "{path}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn a_path_that_is_not_known_is_refused_beside_hooks_unless_it_may_pass() {
    let upstream = Upstream::json("{}");
    let closed = watchful(&upstream, UpstreamKind::Ollama, |_| {});
    assert_eq!(closed.ask(post("/not/known", "{}")).status, 403);
    let pass = watchful(&upstream, UpstreamKind::Ollama, |config| config.unknown_paths = Door::Pass);
    assert_eq!(pass.ask(post("/not/known", "{}")).status, 200);
}

#[test]
fn a_hooked_path_is_hooked_however_it_is_spelled() {
    let upstream = Upstream::json("{}");
    let deny = guard(vec![hook(Event::PreInference, |_| Ok(Some(says(Permission::Deny))))]);
    let unknown_paths = Door::Pass;
    let gate = Gate::start(Config { guard: deny, unknown_paths, ..config(&upstream.url()) });
    for path in ["/api/chat", "//api/chat", "/api//chat", "/api/./chat", "/api/chat/", "/api/%63hat", "/%61pi/chat?x=1"]
    {
        let reply = gate.ask(post(path, CHAT));
        assert_eq!(reply.json()["hook"]["permission"], "deny", "{path}: {}", reply.text());
    }
    for path in [
        "/API/chat",
        "/x/../api/chat",
        "/x/%2e%2e/api/chat",
        "/api%2Fchat",
        "/api%5Cchat",
        "/api/%2563hat",
        "/api/chat;v=1",
        "/api/chat%00",
    ] {
        assert_eq!(gate.ask(post(path, CHAT)).status, 400, "{path}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn the_upstream_gets_the_spelling_that_was_looked_up() {
    let upstream = Upstream::json("{}");
    watchful(&upstream, UpstreamKind::Ollama, |_| {}).ask(post("//api/%63hat/?a=%2F", CHAT));
    assert_eq!(upstream.seen().line(), "POST /api/chat?a=%2F HTTP/1.1");
}

#[test]
fn a_target_that_is_no_path_is_refused() {
    let upstream = Upstream::json("{}");
    for gate in [Gate::before(&upstream), watchful(&upstream, UpstreamKind::Ollama, |_| {})] {
        for target in ["http://localhost/api/chat", "*", "localhost:80"] {
            let method = if target.starts_with('l') { "CONNECT" } else { "POST" };
            let request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}");
            assert_eq!(gate.ask(request).status, 400, "{target}");
        }
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn a_hooked_path_has_one_method() {
    let upstream = Upstream::json("{}");
    let gate = watchful(&upstream, UpstreamKind::Ollama, |config| config.unknown_paths = Door::Pass);
    for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
        let request = format!("{method} /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}");
        assert_eq!(gate.ask(request).status, 405, "{method}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn a_connection_that_changes_its_protocol_is_refused_beside_hooks() {
    let upstream = Upstream::json("{}");
    let gate = watchful(&upstream, UpstreamKind::OpenAi, |config| config.unknown_paths = Door::Pass);
    let request = "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(gate.ask(request).status, 403);
    assert!(upstream.saw_nothing());
}

#[test]
fn a_route_by_another_name_is_hooked_too() {
    let upstream = Upstream::json("{}");
    let deny = guard(vec![hook(Event::PreInference, |_| Ok(Some(says(Permission::Deny))))]);
    let openai = vec![UpstreamConfig::new("mock", UpstreamKind::OpenAi, upstream.url())];
    let gate = Gate::start(Config { guard: deny, upstreams: openai, ..config("") });
    assert_eq!(gate.ask(post("/chat/completions", CHAT)).json()["error"]["code"], "hook_deny");
    assert!(upstream.saw_nothing());
}

#[test]
fn an_error_has_the_shape_of_its_path() {
    let upstream = Upstream::json("{}");
    let gate = watchful(&upstream, UpstreamKind::Ollama, |_| {});
    assert!(gate.ask(post("/api/unknown", "")).json()["error"].is_string());
    assert!(gate.ask(post("/v1/unknown", "")).json()["error"]["code"].is_string());
    assert_eq!(gate.ask(post("/v1/messages/unknown", "")).json()["type"], "error");
}

#[test]
fn a_hook_that_only_observes_shuts_no_door_and_misses_no_spelling() {
    let upstream = Upstream::json("{}");
    let (sender, told) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let see = move |_: &gatehook_engine::events::Input| {
        let _ = sender.lock().unwrap().send(());
        Ok(None)
    };
    let guard = guard(vec![hook(Event::PreInference, see).observing()]);
    let gate = Gate::start(Config { guard, ..config(&upstream.url()) });
    for path in ["/completion", "/not/known"] {
        assert_eq!(gate.ask(post(path, "{}")).status, 200, "{path}");
    }
    assert_eq!(gate.ask(get("/api/chat")).status, 200, "the upstream's own 405, if it has one");
    for path in ["/api/chat", "//api/chat/"] {
        assert_eq!(gate.ask(post(path, CHAT)).status, 200, "{path}");
        told.recv_timeout(std::time::Duration::from_secs(20)).expect("it was seen");
    }
    assert_eq!(gate.ask(post("/API/chat", CHAT)).status, 400);
}

#[test]
fn an_observer_goes_on_seeing_after_a_large_body() {
    let upstream = Upstream::json("{}");
    let (sender, told) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let see = move |_: &gatehook_engine::events::Input| {
        let _ = sender.lock().unwrap().send(());
        Ok(None)
    };
    let guard = guard(vec![hook(Event::PreInference, see).observing()]);
    let gate = Gate::start(Config { guard, workers: 3, ..config(&upstream.url()) });
    let large = CHAT.replace("hi", &"x".repeat(300_000));
    for body in [&large, CHAT, &large, CHAT] {
        assert_eq!(gate.ask(post("/api/chat", body)).status, 200);
        told.recv_timeout(std::time::Duration::from_secs(20)).expect("it was seen");
    }
}
