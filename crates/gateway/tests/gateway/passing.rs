//! What no hook looks at passes as it is.

use crate::support::{Gate, Upstream, config, get, post, post_with, response};
use gatehook_gateway::config::{Secret, UpstreamConfig, UpstreamKind};

const ODD: &str =
    "{ \"model\":\"m\",\t\"messages\":[ {\"role\":\"user\",\"content\":\"h\\u00e4\"} ],\"n\":1.0e0,\"x\":null }\n";

#[test]
fn a_request_passes_byte_for_byte() {
    let upstream = Upstream::json("{}");
    Gate::before(&upstream).ask(post("/v1/chat/completions?a=%20b", ODD));
    let seen = upstream.seen();
    assert_eq!(seen.text(), ODD);
    assert_eq!(seen.line(), "POST /v1/chat/completions?a=%20b HTTP/1.1");
}

#[test]
fn a_response_passes_byte_for_byte() {
    let upstream = Upstream::answering(response(418, "application/x-odd", ODD));
    let reply = Gate::before(&upstream).ask(get("/anything"));
    assert_eq!((reply.status, reply.text()), (418, ODD.to_owned()));
    assert_eq!(reply.header("content-type"), Some("application/x-odd"));
}

#[test]
fn what_is_no_json_passes_too() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    for body in ["", "{", "\u{0}\u{1}", "{\"messages\":1,\"messages\":2}"] {
        assert_eq!(gate.ask(post("/api/chat", body)).status, 200, "{body:?}");
        assert_eq!(upstream.seen().text(), body);
    }
}

#[test]
fn chunked_bodies_pass_in_both_directions() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let upstream = Upstream::answering(answer);
    let request = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    let reply = Gate::before(&upstream).ask(request);
    assert_eq!(reply.text(), "abcde");
    assert_eq!(upstream.seen().text(), "hello");
}

#[test]
fn a_large_body_passes_in_both_directions() {
    let large = "x".repeat(3_000_000);
    let upstream = Upstream::answering(response(200, "text/plain", &large));
    let reply = Gate::before(&upstream).ask(post("/api/blobs/sha256:00", &large));
    assert!(reply.text() == large && upstream.seen().text() == large);
}

#[test]
fn a_stream_passes_piece_by_piece() {
    let (next, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::new(move |_, wire| {
        wire.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ndata: 1\r\n",
        );
        wait.lock().unwrap().recv().unwrap();
        wire.send("7\r\ndata: 2\r\n0\r\n\r\n");
        true
    });
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    client.until(b"data: 1").expect("the first piece comes before the second is there");
    next.send(()).unwrap();
    client.until(b"data: 2").expect("the second piece");
}

#[test]
fn headers_of_this_hop_end_here() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nX-End: 2\r\nContent-Length: 0\r\n\r\n",
    );
    let request = post_with(
        "/api/chat",
        "Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\nProxy-Connection: x\r\nX-End: 2\r\n\
         X-HTTP-Method-Override: GET\r\nX-Gatehook-Approval: secret\r\nExpect: 100-continue\r\n",
        "{}",
    );
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    client.send(request);
    let mut reply = client.reply().unwrap();
    if reply.status == 100 {
        reply = client.reply().unwrap();
    }
    let seen = upstream.seen();
    for name in
        ["connection", "x-mine", "te", "proxy-connection", "x-http-method-override", "x-gatehook-approval", "expect"]
    {
        assert_eq!(seen.header(name), None, "{name} in {}", seen.head);
    }
    assert_eq!((seen.header("x-end"), reply.header("x-end")), (Some("2"), Some("2")));
    assert_eq!((reply.header("x-hop"), reply.header("keep-alive")), (None, None));
}

#[test]
fn the_upstream_is_called_by_its_own_name_and_learns_who_stands_before_it() {
    let upstream = Upstream::json("{}");
    Gate::before(&upstream).ask(get("/"));
    let seen = upstream.seen();
    assert_eq!(seen.header("host"), Some(upstream.addr.to_string().as_str()));
    assert!(seen.header("via").unwrap().starts_with("1.1 gatehook-"), "{}", seen.head);
}

#[test]
fn every_response_has_an_id_of_its_own() {
    let upstream = Upstream::json("{}");
    let gate = Gate::before(&upstream);
    let ids = [gate.ask(get("/")), gate.ask(get("/")), gate.ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")];
    let ids = ids.map(|reply| reply.header("x-ollama-request-id").unwrap().to_owned());
    assert_eq!(ids[0].len(), 36);
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn the_clients_credentials_pass_where_the_upstream_has_none_of_its_own() {
    let upstream = Upstream::json("{}");
    Gate::before(&upstream).ask(post_with("/v1/messages", "Authorization: Bearer mine\r\nX-Api-Key: k\r\n", "{}"));
    let seen = upstream.seen();
    assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (Some("Bearer mine"), Some("k")));
}

#[test]
fn an_upstreams_own_key_stands_in_the_place_of_the_clients() {
    for (kind, authorization, key) in [
        (UpstreamKind::OpenAi, Some("Bearer own"), None),
        (UpstreamKind::Ollama, Some("Bearer own"), None),
        (UpstreamKind::Anthropic, None, Some("own")),
    ] {
        let upstream = Upstream::json("{}");
        let own = UpstreamConfig {
            api_key: Some(Secret::Value("own".into())),
            ..UpstreamConfig::new("u", kind, upstream.url())
        };
        let gate = Gate::start(gatehook_gateway::Config { upstreams: vec![own], ..config("") });
        gate.ask(post_with("/v1/messages", "Authorization: Bearer mine\r\nX-Api-Key: mine\r\n", "{}"));
        let seen = upstream.seen();
        assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (authorization, key), "{kind:?}");
    }
}

#[test]
fn a_base_path_stands_before_every_path() {
    let upstream = Upstream::json("{}");
    Gate::start(config(&format!("{}/base/", upstream.url()))).ask(get("/v1/models?x=1"));
    assert_eq!(upstream.seen().line(), "GET /base/v1/models?x=1 HTTP/1.1");
}

#[test]
fn the_model_chooses_the_upstream() {
    let (one, two) = (Upstream::json("1"), Upstream::json("2"));
    let first = UpstreamConfig::new("one", UpstreamKind::Ollama, one.url());
    let second =
        UpstreamConfig { models: vec!["gpt-*".into()], ..UpstreamConfig::new("two", UpstreamKind::OpenAi, two.url()) };
    let gate = Gate::start(gatehook_gateway::Config { upstreams: vec![first, second], ..config("") });
    for (model, answer) in [("llama3", "1"), ("gpt-5", "2"), ("my-gpt-5", "1")] {
        let body = format!("{{\"model\":\"{model}\"}}");
        assert_eq!(gate.ask(post("/v1/chat/completions", &body)).text(), answer, "{model}");
    }
    assert_eq!(gate.ask(get("/v1/models")).text(), "1");
}

#[test]
fn requests_share_a_connection_on_both_sides() {
    let opened = std::sync::Arc::new(std::sync::Mutex::new(std::collections::HashSet::new()));
    let peers = opened.clone();
    let upstream = Upstream::new(move |_, wire| {
        peers.lock().unwrap().insert(wire.stream.peer_addr().unwrap());
        wire.send(response(200, "text/plain", "x"));
        true
    });
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    for _ in 0..3 {
        assert_eq!(client.ask(post("/api/chat", "{}")).status, 200);
    }
    assert_eq!(gate.connect().ask(get("/")).status, 200);
    assert_eq!(opened.lock().unwrap().len(), 1);
}

#[test]
fn a_kept_connection_that_the_upstream_has_closed_is_replaced() {
    let upstream = Upstream::new(|_, wire| {
        wire.send(response(200, "text/plain", "x"));
        false
    });
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    for _ in 0..5 {
        assert_eq!(client.ask(post("/api/chat", "{}")).status, 200);
    }
}

#[test]
fn the_head_alone_can_be_asked_for() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    client.send("HEAD /api/tags HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.head().unwrap().to_lowercase().contains("content-length: 5"));
    client.send("HEAD /api/tags HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"), "the connection goes on");
}

#[test]
fn a_client_that_goes_away_cancels_the_upstreams_work() {
    let (cancelled, heard) = std::sync::mpsc::channel();
    let upstream = Upstream::new(move |_, wire| {
        let _ = cancelled.send(wire.is_closed());
        false
    });
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    upstream.seen();
    drop(client);
    assert!(heard.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
}

#[test]
fn a_client_that_goes_away_within_a_stream_cancels_it_too() {
    let (cancelled, heard) = std::sync::mpsc::channel();
    let upstream = Upstream::new(move |_, wire| {
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        let _ = cancelled.send(wire.is_closed());
        false
    });
    let gate = Gate::before(&upstream);
    let mut client = gate.connect();
    client.send(post("/api/chat", "{}"));
    client.until(b"1\r\na").unwrap();
    drop(client);
    assert!(heard.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
}

/// An HTTPS server with a certificate of its own that answers one request a connection.
fn secure_upstream() -> (std::net::SocketAddr, std::path::PathBuf) {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/tls");
    let file = folder.join("localhost.pem");
    let certificate = CertificateDer::from_pem_file(&file).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("localhost.key")).unwrap();
    let ring = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
    let server = std::sync::Arc::new(server.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let session = rustls::ServerConnection::new(server.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(session, stream);
            if std::io::Read::read(&mut stream, &mut [0; 4096]).is_ok() {
                let _ = std::io::Write::write_all(&mut stream, &response(200, "text/plain", "secure"));
            }
        }
    });
    (addr, file)
}

#[test]
fn an_upstream_is_reached_by_https_if_its_certificate_is_trusted() {
    let (addr, ca_file) = secure_upstream();
    for (host, ca_file, status) in
        [("localhost", Some(&ca_file), 200), ("127.0.0.1", Some(&ca_file), 200), ("localhost", None, 502)]
    {
        let url = format!("https://{host}:{}", addr.port());
        let upstream =
            UpstreamConfig { ca_file: ca_file.cloned(), ..UpstreamConfig::new("s", UpstreamKind::OpenAi, url) };
        let gate = Gate::start(gatehook_gateway::Config { upstreams: vec![upstream], ..config("") });
        assert_eq!(gate.ask(get("/v1/models")).status, status, "{host} {}", ca_file.is_some());
    }
}
