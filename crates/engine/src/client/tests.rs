use bytes::Bytes;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};

use super::raw_server::{Answer, RawServer, response};
use super::*;

const LIMIT: usize = 1 << 20;

async fn post(client: &Client, url: &str) -> Result<Response<Body>, ClientError> {
    let body = RequestBody::from(Bytes::from_static(b"question"));
    client.send(Request::post(url).body(body).unwrap()).await
}

async fn text(client: &Client, url: &str) -> String {
    let body = post(client, url).await.unwrap().into_body().collect_within(LIMIT).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

/// Lets the runtime hear what happened on its sockets.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_request_has_a_path_and_a_host_and_no_user_information() {
    let server = RawServer::new(&[Answer::Keep(response("200 OK", "yes"))]).await;
    let client = Client::new(Reach::Any);
    let url = format!("http://user:secret@{}/path?query", server.address);
    assert_eq!(text(&client, &url).await, "yes");
    let [request] = server.requests().try_into().unwrap();
    assert!(request.starts_with("POST /path?query HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("host: {}\r\n", server.address)), "{request}");
    assert!(request.ends_with("\r\n\r\nquestion"), "{request}");
    assert!(!request.contains("secret"), "{request}");
    assert_eq!(text(&client, &server.url("")).await, "yes");
    assert!(server.requests()[1].starts_with("POST / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n".to_vec();
    let empty = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    let answers = [response("200 OK", "yes"), chunked, empty, response("500 Oops", "no")].map(Answer::Keep);
    let server = RawServer::new(&answers).await;
    let client = Client::new(Reach::Any);
    for _ in 0..10 {
        text(&client, &server.url("/")).await;
    }
    assert_eq!((server.requests().len(), server.connections()), (10, 1));
}

#[tokio::test]
async fn a_body_that_nobody_reads_costs_its_connection() {
    let server = RawServer::new(&[Answer::Keep(response("200 OK", "yes"))]).await;
    let client = Client::new(Reach::Any);
    for _ in 0..3 {
        drop(post(&client, &server.url("/")).await.unwrap());
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn requests_at_once_have_connections_of_their_own_that_are_kept() {
    let server = RawServer::new(&[Answer::Keep(response("200 OK", "yes"))]).await;
    let client = Client::new(Reach::Any);
    let url = server.url("/");
    for _ in 0..3 {
        futures_util::future::join_all((0..8).map(|_| text(&client, &url))).await;
        settle().await;
    }
    assert_eq!((server.requests().len(), server.connections()), (24, 8));
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced() {
    let server = RawServer::new(&[Answer::Close(response("200 OK", "yes"))]).await;
    let client = Client::new(Reach::Any);
    for _ in 0..3 {
        assert_eq!(text(&client, &server.url("/")).await, "yes");
        settle().await;
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 3));
}

#[tokio::test]
async fn what_may_have_been_processed_is_not_sent_again() {
    let server = RawServer::new(&[Answer::Keep(response("200 OK", "yes")), Answer::Close(Vec::new())]).await;
    let client = Client::new(Reach::Any);
    text(&client, &server.url("/")).await;
    let error = post(&client, &server.url("/")).await.err().unwrap();
    assert!(matches!(error, ClientError::Exchange { .. }) && !error.is_connect(), "{error}");
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[test]
fn runtimes_do_not_share_connections() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (home, other) = (runtime(), runtime());
    let server = home.block_on(RawServer::new(&[Answer::Keep(response("200 OK", "yes"))]));
    let url = server.url("/");
    let client = Client::new(Reach::Any);
    let elsewhere = {
        let (client, url) = (client.clone(), url.clone());
        std::thread::spawn(move || other.block_on(async { text(&client, &url).await + &text(&client, &url).await }))
    };
    home.block_on(async {
        while !elsewhere.is_finished() {
            tokio::task::yield_now().await;
        }
        text(&client, &url).await;
        text(&client, &url).await;
    });
    assert_eq!(elsewhere.join().unwrap(), "yesyes");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_body_is_bounded_whether_it_says_its_length_or_not() {
    let long = "x".repeat(10 << 20);
    let chunked =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    for answer in [response("200 OK", &long), chunked.into_bytes(), format!("HTTP/1.1 200 OK\r\n\r\n{long}").into()] {
        let server = RawServer::new(&[Answer::Close(answer)]).await;
        let response = post(&Client::new(Reach::Any), &server.url("/")).await.unwrap();
        let error = response.into_body().collect_within(LIMIT).await.unwrap_err();
        assert!(matches!(error, BodyError::TooLarge { limit: LIMIT }), "{error}");
    }
}

#[tokio::test]
async fn a_body_in_many_pieces_is_whole_at_its_limit() {
    let body = "xyz".repeat(100_000);
    let server = RawServer::new(&[Answer::Keep(response("200 OK", &body))]).await;
    let response = post(&Client::new(Reach::Any), &server.url("/")).await.unwrap();
    assert_eq!(response.into_body().collect_within(body.len()).await.unwrap(), body);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error() {
    let server = RawServer::new(&[Answer::Close(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec())]).await;
    let response = post(&Client::new(Reach::Any), &server.url("/")).await.unwrap();
    assert!(matches!(response.into_body().collect_within(LIMIT).await, Err(BodyError::Broken(_))));
}

#[tokio::test]
async fn nobody_listening_is_a_connect_error() {
    let address = RawServer::new(&[Answer::Hang]).await.address;
    settle().await;
    let error = post(&Client::new(Reach::Any), &format!("http://{address}/")).await.err().unwrap();
    assert!(error.is_connect(), "{error}");
}

#[tokio::test]
async fn forbidden_addresses_are_not_connected_to() {
    for (reach, url) in [
        (Reach::Any, "http://169.254.169.254/latest"),
        (Reach::Any, "http://[::ffff:169.254.169.254]/latest"),
        (Reach::Any, "http://[::ffff:a9fe:a9fe]/"),
        (Reach::Any, "http://0.0.0.0:1/"),
        (Reach::Public, "http://127.0.0.1:1/"),
        (Reach::Public, "http://localhost:1/"),
        (Reach::Public, "http://2130706433:1/"),
        (Reach::Public, "https://[::1]:1/"),
    ] {
        let error = post(&Client::new(reach), url).await.err().unwrap();
        assert!(matches!(error, ClientError::Forbidden { .. }), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_url_must_be_absolute_and_of_the_web() {
    for url in ["/path", "ftp://h/", "unix:/x", "http://user@/"] {
        if let Ok(request) = Request::get(url).body(RequestBody::from(Bytes::new())) {
            let error = Client::new(Reach::Any).send(request).await.err().unwrap();
            assert!(matches!(error, ClientError::InvalidUrl), "{url}: {error}");
        }
    }
}

/// A server for `localhost` with a certificate of its own, and a client configuration that trusts it.
async fn tls_server(answer: Answer) -> (RawServer, Arc<ClientConfig>) {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("../../tests/tls/localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../../tests/tls/localhost.key")).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&ring)).with_safe_default_protocol_versions().unwrap();
    let server = server.with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    (RawServer::tls(&[answer], Arc::new(server).into()).await, Arc::new(client))
}

#[tokio::test]
async fn https_is_spoken_with_whom_the_client_trusts() {
    let (server, trusting) = tls_server(Answer::Keep(response("200 OK", "yes"))).await;
    let client = Client::with_tls(Reach::Any, trusting);
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{}/", server.address.port());
        for _ in 0..3 {
            assert_eq!(text(&client, &url).await, "yes", "{url}");
        }
    }
    assert_eq!((server.requests().len(), server.connections()), (6, 2));
}

#[tokio::test]
async fn https_with_a_stranger_is_an_error() {
    let (server, trusting) = tls_server(Answer::Keep(response("200 OK", "yes"))).await;
    for (client, host) in
        [(Client::new(Reach::Any), "localhost"), (Client::with_tls(Reach::Any, trusting), "[::ffff:127.0.0.1]")]
    {
        let url = format!("https://{host}:{}/", server.address.port());
        let error = post(&client, &url).await.err().unwrap();
        assert!(matches!(error, ClientError::Tls { .. }), "{url}: {error}");
    }
    assert_eq!(server.requests().len(), 0);
}
