use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::tools::tests::Stage;

/// Answers each path as it is told to, on loopback.
struct Server {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    async fn new(pages: Vec<(&'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let pages = pages.clone();
                tokio::spawn(async move {
                    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
                    while !request.ends_with(b"\r\n\r\n") {
                        match stream.read(&mut buffer).await {
                            Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
                            _ => return,
                        }
                    }
                    let request = String::from_utf8(request).unwrap();
                    let path = request.split(' ').nth(1).unwrap();
                    match pages.iter().find(|(of, _)| *of == path) {
                        Some((_, answer)) if answer == "hang" => std::future::pending().await,
                        Some((_, answer)) => stream.write_all(answer.as_bytes()).await.unwrap(),
                        None => stream.write_all(page("404 Not Found", "text/plain", "gone").as_bytes()).await.unwrap(),
                    }
                });
            }
        };
        Self { address, _task: AbortOnDropHandle::new(tokio::spawn(serve)) }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn page(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn leads_to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

async fn fetch(reach: Reach, arguments: Value) -> ToolOutput {
    Stage::new().call_of(&Fetch::new(reach), arguments).await
}

#[tokio::test]
async fn a_page_comes_as_text() {
    let html = "<html><body><h1>Hi</h1><p>See <a href='/more'>more</a></body></html>";
    let server = Server::new(vec![
        ("/", page("200 OK", "text/html; charset=utf-8", html)),
        ("/json", page("200 OK", "application/json", "{\"a\": \"<b>\"}")),
        ("/bad", page("500 Oops", "text/plain", "broken")),
        ("/empty", page("200 OK", "text/html", "")),
        ("/zip", page("200 OK", "application/zip", "PK\x03\x04\0\0")),
    ])
    .await;
    let text = format!("200 {}\n# Hi\n\nSee more <{}>", server.url("/"), server.url("/more"));
    let output = fetch(Reach::Any, json!({"url": server.url("/#part")})).await;
    assert_eq!((output.error, output.text), (None, text));
    for (path, raw, error, says) in [
        ("/", true, None, html),
        ("/json", false, None, "{\"a\": \"<b>\"}"),
        ("/bad", false, Some(ToolErrorKind::Network), "broken"),
        ("/none", false, Some(ToolErrorKind::NotFound), "gone"),
        ("/empty", false, None, "(it is empty)"),
        ("/zip", false, None, "(a ZIP archive, or a document that is one of 6 bytes: no text)"),
    ] {
        let output = fetch(Reach::Any, json!({"url": server.url(path), "raw": raw})).await;
        assert_eq!((output.error, output.text.contains(says)), (error, true), "{path}: {}", output.text);
    }
}

#[tokio::test]
async fn redirects_are_followed_under_the_same_rules() {
    let server = Server::new(vec![
        ("/1", leads_to("2?x=1")),
        ("/2?x=1", leads_to("/3")),
        ("/3", page("200 OK", "text/plain", "arrived")),
        ("/round", leads_to("/round")),
        ("/metadata", leads_to("http://169.254.169.254/latest/meta-data/")),
        ("/mapped", leads_to("http://[::ffff:169.254.169.254]/")),
        ("/file", leads_to("file:///etc/passwd")),
        ("/login", leads_to("http://user:password@127.0.0.1/")),
    ])
    .await;
    let output = fetch(Reach::Any, json!({"url": server.url("/1")})).await;
    assert_eq!(output.text, format!("200 {}\narrived", server.url("/3")));
    for (path, kind, says) in [
        ("/round", ToolErrorKind::Network, "more than 5 redirects"),
        ("/metadata", ToolErrorKind::Permission, "must not be called"),
        ("/mapped", ToolErrorKind::Permission, "must not be called"),
        ("/file", ToolErrorKind::InvalidInput, "no http or https address"),
        ("/login", ToolErrorKind::InvalidInput, "holds a name or a password"),
    ] {
        let output = fetch(Reach::Any, json!({"url": server.url(path)})).await;
        assert_eq!((output.error, output.text.contains(says)), (Some(kind), true), "{path}: {}", output.text);
    }
}

#[tokio::test]
async fn addresses_that_are_not_public_are_not_called() {
    let server = Server::new(vec![("/", page("200 OK", "text/plain", "private"))]).await;
    let port = server.address.port();
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        "http://10.0.0.1/".to_owned(),
        "http://169.254.169.254/".to_owned(),
    ] {
        let output = fetch(Reach::Public, json!({ "url": url })).await;
        assert_eq!(output.error, Some(ToolErrorKind::Permission), "{url}: {}", output.text);
    }
    for url in ["", "example.com", "ftp://example.com/", "file:///etc/passwd", "http://", "javascript:alert(1)"] {
        let output = fetch(Reach::Public, json!({ "url": url })).await;
        assert_eq!(output.error, Some(ToolErrorKind::InvalidInput), "{url}: {}", output.text);
    }
}

#[tokio::test]
async fn a_long_page_comes_in_parts() {
    let long: String = (0..20_000).map(|number| format!("line {number} ü\n")).collect();
    let huge = "x".repeat(READ + 10);
    let pages = vec![("/long", page("200 OK", "text/plain", &long)), ("/huge", page("200 OK", "text/plain", &huge))];
    let server = Server::new(pages).await;
    let (mut offset, mut together) = (0, String::new());
    loop {
        let output = fetch(Reach::Any, json!({"url": server.url("/long"), "offset": offset})).await;
        let (_, text) = output.text.split_once('\n').unwrap();
        let Some((part, next)) = text.rsplit_once("\n(more follows, of ") else {
            together.push_str(text);
            break;
        };
        together.push_str(part);
        offset = next.rsplit_once("offset ").unwrap().1.trim_end_matches(')').parse().unwrap();
    }
    assert_eq!(together, long);
    let output = fetch(Reach::Any, json!({"url": server.url("/huge"), "offset": READ - 5})).await;
    assert!(output.text.contains("its rest was not read"), "{}", output.text);
    let output = fetch(Reach::Any, json!({"url": server.url("/long"), "offset": 9_999_999})).await;
    assert_eq!(output.error, Some(ToolErrorKind::InvalidInput));
}

#[tokio::test]
async fn a_server_that_hangs_keeps_nobody_waiting() {
    let server = Server::new(vec![("/", "hang".to_owned())]).await;
    let tool = Fetch { limit: Duration::from_millis(100), ..Fetch::new(Reach::Any) };
    let output = Stage::new().call_of(&tool, json!({"url": server.url("/")})).await;
    assert_eq!(output.error, Some(ToolErrorKind::Timeout));
    let stage = Stage::new();
    let tool = Fetch::new(Reach::Any);
    let calling = stage.call_of(&tool, json!({"url": server.url("/")}));
    let cancelling = async {
        tokio::task::yield_now().await;
        stage.cancel.cancel();
    };
    let (output, ()) = tokio::join!(calling, cancelling);
    assert_eq!(output.error, Some(ToolErrorKind::Cancelled));
}
