use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::model::*;

struct Quiet;

impl Says for Quiet {
    fn says<'a>(&'a self, _thinking: bool, _piece: &'a str) -> Saying<'a> {
        Box::pin(std::future::ready(()))
    }
}

#[derive(Default)]
struct Pieces(Mutex<Vec<String>>);

impl Says for Pieces {
    fn says<'a>(&'a self, thinking: bool, piece: &'a str) -> Saying<'a> {
        self.0.lock().unwrap().push(format!("{}{piece}", if thinking { "?" } else { "" }));
        Box::pin(std::future::ready(()))
    }
}

async fn asked_with(model: &Model, text: &str, says: &dyn Says) -> Result<Reply, ModelError> {
    let (messages, session, cancel) = ([Message::new("user", text)], "s".into(), CancellationToken::new());
    let ask =
        Ask { system: None, messages: &messages, tools: &[], guard: None, session_id: &session, says, cancel: &cancel };
    model.ask(&ask).await
}

async fn asked(model: &Model, text: &str) -> Result<Reply, ModelError> {
    asked_with(model, text, &Quiet).await
}

fn model(text: &str) -> Model {
    Model::replay(Replay::parse("a.yaml", text).unwrap())
}

async fn said(model: &Model, text: &str) -> String {
    asked(model, text).await.unwrap().message.content.unwrap_or_default().to_string()
}

#[tokio::test]
async fn answers_come_in_order_and_their_end_is_told() {
    let model = model("- text: one\n- text: two\n");
    assert_eq!(&**model.id(), "replay/a");
    assert_eq!((said(&model, "x").await, said(&model, "x").await), ("one".to_owned(), "two".to_owned()));
    let error = asked(&model, "x").await.unwrap_err();
    assert_eq!(error.to_string(), "the model cannot be asked: a.yaml has no answer left: all 2 have been given");
}

#[tokio::test]
async fn an_answer_waits_for_its_agent_and_its_text() {
    let model =
        model("- {agent: helper, text: of the helper}\n- {match: \"a \\\"b\\\"\", text: of b}\n- text: plain\n");
    let helper = model.of_agent(&"helper".into());
    assert_eq!(said(&model, "say a \"b\" now").await, "of b");
    assert_eq!(said(&model, "x").await, "plain");
    let error = asked(&model.of_agent(&"root".into()), "x").await.unwrap_err().to_string();
    assert!(error.contains("of the agent `root`") && error.contains("in line 1, has `agent: helper`"), "{error}");
    assert_eq!(said(&helper, "x").await, "of the helper");
}

#[tokio::test]
async fn an_answer_says_all_that_a_model_can() {
    let text = r#"{"text":"Look.","thinking":"Hm.","tool_calls":[{"name":"ls","arguments":{"a":1}},{"name":"rm","arguments":"{bro","id":"x"}],"usage":{"input_tokens":7,"output_tokens":3}}"#;
    let model = Model::replay(Replay::parse("a.jsonl", &format!("\n{text}\n\n")).unwrap());
    let reply = asked(&model, "x").await.unwrap();
    assert_eq!((reply.message.content.as_deref(), reply.message.thinking.as_deref()), (Some("Look."), Some("Hm.")));
    let calls = reply.message.tool_calls.unwrap();
    let calls: Vec<_> = calls.iter().map(|call| (call.id.as_deref().unwrap(), &*call.function.arguments)).collect();
    assert_eq!(calls, [("call_1_1", "{\"a\":1}"), ("x", "{bro")]);
    assert_eq!((reply.input_tokens, reply.output_tokens), (Some(7), Some(3)));
    assert_eq!(reply.done_reason.as_deref(), Some("tool_calls"));
}

#[tokio::test]
async fn texts_come_in_as_many_pieces_as_are_asked_for() {
    let (model, pieces) =
        (model("- {text: äbcdef, thinking: xy, pieces: 3, done_reason: length}\n"), Pieces::default());
    let reply = asked_with(&model, "x", &pieces).await.unwrap();
    assert_eq!(*pieces.0.lock().unwrap(), ["?x", "?y", "äb", "cd", "ef"]);
    assert_eq!(reply.done_reason.as_deref(), Some("length"));
}

#[tokio::test]
async fn an_answer_can_break_off_fail_or_be_anything() {
    let text = r#"
- {text: Hal, break: true}
- {tool_calls: [{name: ls, arguments: {path: x}}], break: true}
- {status: 400, error: prompt is too long}
- {status: 401, error: {message: no key, type: authentication_error}}
- {text: Hal, error: {message: out of memory, code: 500}}
- {chunks: ["data: {\"choices\":[{\"index\":0,\"del", "ta\":{\"content\":\"raw\"},\"finish_reason\":\"stop\"}]}\n\n", "data: [DONE]\n\n"]}
- {chunks: ["garbage"]}
"#;
    let model = model(text);
    let mut results = Vec::new();
    for _ in 0..7 {
        results.push(
            asked(&model, "x")
                .await
                .map(|reply| reply.message.content.unwrap().to_string())
                .map_err(|it| it.to_string()),
        );
    }
    let error = |text: &str| Err(text.to_owned());
    assert_eq!(results[0], error("the model's answer broke off, as the replay has it"));
    assert_eq!(results[1], results[0]);
    assert_eq!(results[2], error("the conversation does not fit the model's window: prompt is too long"));
    assert_eq!(results[3], error("the model's server answered 401: no key"));
    assert_eq!(results[4], error("the model's server answered 500: out of memory"));
    assert_eq!(results[5], Ok("raw".to_owned()));
    assert!(results[6].as_ref().unwrap_err().contains("broke off"), "{:?}", results[6]);
}

#[tokio::test]
async fn a_busy_answer_is_followed_by_the_next_one_without_a_pause() {
    let model = model("- {status: 429, error: later}\n- text: now\n");
    assert_eq!(said(&model, "x").await, "now");
}

#[tokio::test(start_paused = true)]
async fn an_answer_takes_its_time() {
    let model = model("- {text: ab, pieces: 2, wait: 500, pause: 100}\n");
    let began = tokio::time::Instant::now();
    asked(&model, "x").await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(800), "{:?}", began.elapsed());
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (file, text, expected) in [
        ("a.yaml", "- text: one\n- txet: two\n", "a.yaml:2: unknown field `txet`"),
        ("a.yaml", "text: one\n", "a.yaml:1: a list of answers is expected, not a mapping"),
        ("a.yaml", "- text: one\n\n- {status: 200}\n", "a.yaml:3: `status` is that of an HTTP error"),
        ("a.yaml", "- {status: 500, text: x}\n", "a.yaml:1: an answer with a `status`"),
        ("a.yaml", "- {chunks: [], text: x}\n", "a.yaml:1: `chunks` are all of an answer"),
        ("a.yaml", "- text: [1\n", "a.yaml:"),
        ("a.yaml", "", "a.yaml:1: a list of answers is expected, not nothing"),
        ("a.json", "[]", "a.json: there is no answer in it"),
        ("a.json", "[{\"text\": 1}]", "a.json:1: invalid type"),
        ("a.jsonl", "{\"text\":\"a\"}\n{\"text\":\n", "a.jsonl:2: EOF while parsing"),
        ("a.jsonl", "{\"text\":\"a\"}\n\n{\"tool_calls\":[{\"name\":\"\"}]}", "a.jsonl:3: a tool call needs a `name`"),
        ("a.jsonl", "{\"pieces\":0}", "a.jsonl:1: invalid value"),
    ] {
        let error = Replay::parse(file, text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let error = Replay::open(Path::new("/nowhere/a.yaml")).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/a.yaml: "), "{error}");
}

proptest! {
    #[test]
    fn no_text_is_read_with_a_panic(text: String, lines in any::<bool>()) {
        let _ = Replay::parse(if lines { "a.jsonl" } else { "a.yaml" }, &text);
    }

    #[test]
    fn what_an_answer_says_is_heard(text: String, thinking: String, pieces in 1..9_usize) {
        let answer = json!({"text": text, "thinking": thinking, "pieces": pieces});
        let model = Model::replay(Replay::parse("a.jsonl", &answer.to_string()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let message = runtime.block_on(asked(&model, "x")).unwrap().message;
        prop_assert_eq!(message.content.as_deref().unwrap_or_default(), &text);
        prop_assert_eq!(message.thinking.as_deref().unwrap_or_default(), &thinking);
    }
}
