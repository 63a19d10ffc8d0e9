//! What goes wrong with servers.

use serde_json::json;
use tokio::net::TcpListener;

use super::world::*;
use crate::model::*;

const HEL: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

async fn asked(answers: Vec<Served>) -> (Result<Reply, ModelError>, Question, Host) {
    let host = Host::start(answers).await;
    let question = Question::new("x");
    let patience = Patience { pause: Duration::from_millis(1), ..Patience::default() };
    let model = Model { patience, ..host.model("p/m", Format::OpenAi) };
    (question.ask(&model).await, question, host)
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_known_by_every_providers_words() {
    for (status, body) in [
        (
            400,
            json!({"error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}}),
        ),
        (400, json!({"error": {"code": "context_length_exceeded", "message": "too much"}})),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        ),
        (
            413,
            json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
        ),
        (
            400,
            json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the available context size, try increasing it", "n_ctx": 512}}),
        ),
        (
            500,
            json!({"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context size", "type": "server_error"}}),
        ),
        (400, json!({"error": "the input length exceeds the context length"})),
        (
            400,
            json!({"error": {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}),
        ),
        (400, json!({"detail": "Please reduce the length of the messages or completion."})),
    ] {
        let (reply, ..) = asked(vec![Served::error(status, &body.to_string())]).await;
        assert!(matches!(reply, Err(ModelError::Overflow(_))), "{body}: {reply:?}");
    }
}

#[tokio::test]
async fn other_errors_are_told_in_the_providers_words() {
    for (status, body, message) in [
        (401, "{\"error\":{\"message\":\"Incorrect API key provided\"}}", "Incorrect API key provided"),
        (404, "{\"error\":\"model 'x' not found\"}", "model 'x' not found"),
        (404, "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: x\"}}", "model: x"),
        (500, "<html>\u{1b}[31mBad Gateway</html>", "<html> [31mBad Gateway</html>"),
        (422, "{\"detail\":\"no such field\"}", "no such field"),
        (302, "", ""),
    ] {
        let (reply, ..) = asked(vec![Served::error(status, body)]).await;
        assert_eq!(reply, Err(ModelError::Status { status, message: message.to_owned() }), "{body}");
    }
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_three_times() {
    for status in [429, 503, 529] {
        let busy = Served::error(status, "{\"error\":\"later\"}");
        let (reply, question, _) = asked(vec![busy.clone(), busy.clone(), Served::events(&[HEL, STOP])]).await;
        assert_eq!(reply.unwrap().message.content.as_deref(), Some("Hel"));
        let pauses: Vec<u128> = question.listener.waited.lock().unwrap().iter().map(Duration::as_millis).collect();
        assert_eq!(pauses, [1, 2]);
        let (reply, question, host) = asked(vec![busy]).await;
        assert_eq!(reply, Err(ModelError::Status { status, message: "later".to_owned() }));
        assert_eq!(question.listener.waited.lock().unwrap().len(), 3);
        assert_eq!(host.asked("/v1/chat/completions").len(), 4);
    }
}

#[tokio::test]
async fn the_server_says_when_it_wants_to_be_asked_again() {
    let busy = |after: &str| Served::error(429, "{\"error\":\"later\"}").with(&format!("retry-after: {after}"));
    for past in ["0", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let (reply, question, _) = asked(vec![busy(past), Served::events(&[HEL, STOP])]).await;
        assert!(reply.is_ok(), "{past}");
        let pause = question.listener.waited.lock().unwrap()[0];
        assert!(pause <= Duration::from_millis(1), "{past}: {pause:?}");
    }
    let (reply, question, _) = asked(vec![busy("3600")]).await;
    assert!(matches!(reply, Err(ModelError::Status { status: 429, .. })));
    assert!(question.listener.waited.lock().unwrap().is_empty(), "an hour is not waited");
}

#[tokio::test]
async fn an_error_within_the_stream_ends_it_and_what_came_before_was_said() {
    let error = "data: {\"error\":{\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}}\n\n";
    let (reply, question, _) = asked(vec![Served::events(&[HEL, error])]).await;
    assert_eq!(reply, Err(ModelError::Status { status: 500, message: "out of memory".to_owned() }));
    assert_eq!(question.listener.all(false), "Hel");
}

#[tokio::test]
async fn a_server_that_is_busy_within_the_stream_is_asked_again_unless_it_has_spoken() {
    let busy = "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let (reply, ..) = asked(vec![Served::events(&[busy]), Served::events(&[HEL, STOP])]).await;
    assert!(reply.is_ok());
    let (reply, ..) = asked(vec![Served::events(&[HEL, busy]), Served::events(&[HEL, STOP])]).await;
    assert_eq!(reply, Err(ModelError::Status { status: 529, message: "Overloaded".to_owned() }));
}

#[tokio::test]
async fn a_stream_that_breaks_off_leaves_what_was_said() {
    let broken = [
        Served::events(&[HEL]).ending(Ends::Off),
        Served::events(&[HEL]),
        Served::events(&[HEL, "data: {\"choi"]),
        Served::events(&[HEL, "data: <garbage>\n\n"]),
        Served::events(&[HEL, "data: {\"choices\": 3\n\n"]),
    ];
    for served in broken {
        let (reply, question, _) = asked(vec![served.clone()]).await;
        assert!(matches!(reply, Err(ModelError::Broken(_))), "{served:?}: {reply:?}");
        assert_eq!(question.listener.all(false), "Hel", "{served:?}");
    }
}

#[tokio::test]
async fn garbage_is_no_answer() {
    for served in [
        Served::events(&["\u{0}\u{1}\u{2}"]),
        Served::events(&[]),
        Served::stream("text/html", &["<html>hello</html>"]),
        Served::stream("application/json", &["[]"]),
        Served::stream("application/json", &[""]),
        Served::stream("application/x-ndjson", &["{\"message\":{\"content\":\"x\"},\"done\":true}\n"]),
        Served::events(&[HEL, STOP]).with("content-encoding: br"),
    ] {
        let (reply, question, _) = asked(vec![served.clone()]).await;
        assert!(matches!(reply, Err(ModelError::Broken(_))), "{served:?}: {reply:?}");
        assert!(!question.listener.all(false).contains("html"));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_cannot_be_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = Host::start(vec![Served::events(&[])]).await;
    let gone = Host { url: format!("http://{}", listener.local_addr().unwrap()), ..host };
    drop(listener);
    let question = Question::new("x");
    let error = question.ask(&gone.model("p/m", Format::OpenAi)).await.unwrap_err();
    assert!(matches!(&error, ModelError::Unreachable(why) if why.contains("127.0.0.1")), "{error}");
}

#[tokio::test]
async fn a_server_that_falls_silent_is_not_waited_for_without_end() {
    let patience =
        Patience { first_byte: Duration::from_millis(40), idle: Duration::from_millis(40), ..Patience::default() };
    for (pieces, said) in [(&[HEL][..], "Hel"), (&[], "")] {
        let host = Host::start(vec![Served::events(pieces).ending(Ends::Never)]).await;
        let question = Question::new("x");
        let model = Model { patience, ..host.model("p/m", Format::OpenAi) };
        let error = question.ask(&model).await.unwrap_err();
        assert!(matches!(&error, ModelError::Broken(why) if why.contains("stopped for")), "{error}");
        assert_eq!(question.listener.all(false), said);
        host.closed.notified().await;
    }
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = Host::start(vec![Served::events(&[])]).await;
    let host = Host { url: format!("http://{}", silent.local_addr().unwrap()), ..host };
    let model = Model { patience, ..host.model("p/m", Format::OpenAi) };
    let error = Question::new("x").ask(&model).await.unwrap_err();
    assert!(matches!(&error, ModelError::Unreachable(why) if why.contains("has not answered")), "{error}");
}

#[tokio::test]
async fn giving_up_closes_the_connection_at_once() {
    let host = Host::start(vec![Served::events(&[HEL]).ending(Ends::Never)]).await;
    let mut question = Question::new("x");
    question.listener.cancels = Some(question.cancel.clone());
    let error = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap_err();
    assert_eq!(error, ModelError::Cancelled);
    assert_eq!(question.listener.all(false), "Hel");
    host.closed.notified().await;
}

#[tokio::test]
async fn who_has_given_up_asks_nobody() {
    let host = Host::start(vec![Served::events(&[HEL, STOP])]).await;
    let question = Question::new("x");
    question.cancel.cancel();
    assert_eq!(question.ask(&host.model("p/m", Format::OpenAi)).await, Err(ModelError::Cancelled));
    assert!(host.asked("/v1/chat/completions").is_empty());
}

#[test]
fn credentials_are_never_shown() {
    let mut key = http::HeaderValue::from_static("Bearer sk-secret");
    key.set_sensitive(true);
    let headers = http::HeaderMap::from_iter([(http::header::AUTHORIZATION, key)]);
    let client = gatehook_engine::client::Client::new(gatehook_engine::client::Reach::Any);
    let http = Http::new(client, http::Uri::from_static("http://h/v1/chat/completions"), headers);
    let model = Model::new("p/m", Format::OpenAi, Server::Http(http));
    assert!(!format!("{model:?}").contains("sk-secret"));
}
