//! Recorded streams of real servers, split anywhere.

use std::path::PathBuf;

use bytes::Bytes;
use gatehook_inference::Route;
use proptest::prelude::*;
use serde_json::json;

use super::world::*;
use crate::model::read::Reader;
use crate::model::*;

const FORMATS: [(&str, Format); 3] =
    [("api-chat", Format::Ollama), ("chat-completions", Format::OpenAi), ("messages", Format::Anthropic)];

fn folder(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../inference/tests/bodies", name].iter().collect()
}

fn stream(folder_name: &str, name: &str) -> String {
    std::fs::read_to_string(folder(folder_name).join(name)).unwrap()
}

/// All recordings: their name, format and bytes.
fn recordings() -> Vec<(String, Format, String)> {
    let mut found = Vec::new();
    for (name, format) in FORMATS {
        for entry in std::fs::read_dir(folder(name)).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            if file.starts_with("stream-") {
                found.push((format!("{name}/{file}"), format, stream(name, &file)));
            }
        }
    }
    found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    found
}

/// What is heard of a stream in these pieces: what was told, and the reply or why there is none.
fn heard(format: Format, pieces: &[&[u8]]) -> (String, String, Result<Reply, String>) {
    let model = Model::new("p/m", format, Server::Replay(Replay::parse("a.yaml", "- text: x").unwrap()));
    let mut reader = Reader::new(format.route());
    let mut told = [String::new(), String::new()];
    let mut read = Ok(());
    for piece in pieces {
        read = read.and_then(|()| reader.push(Bytes::copy_from_slice(piece)));
        reader.untold().iter().for_each(|(thinking, piece)| told[usize::from(*thinking)].push_str(piece));
    }
    read = read.and_then(|()| reader.finish());
    let failed = reader.failed().map(|failed| failed.error);
    let (question, session) = (Question::new("x"), "s".into());
    let reply = reader.reply(&model, &question.as_ask(&session));
    let [text, thinking] = told;
    (text, thinking, read.and(failed.map_or(Ok(()), Err)).map(|()| reply).map_err(|error| error.to_string()))
}

/// Identities that a reply was given, by their place: they are new each time.
fn plain(mut reply: Reply) -> Reply {
    for (place, call) in reply.message.tool_calls.iter_mut().flatten().enumerate() {
        let made = call.id.as_deref().is_some_and(|id| id.starts_with("call_") && id.len() == 37);
        if made {
            call.id = Some(format!("made {place}").into());
        }
    }
    reply
}

proptest! {
    #[test]
    fn however_a_stream_is_split_the_same_is_heard(which in any::<prop::sample::Index>(), mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let recordings = recordings();
        let (name, format, stream) = which.get(&recordings);
        let whole = heard(*format, &[stream.as_bytes()]);
        let mut at: Vec<usize> = cuts.drain(..).map(|cut| cut.index(stream.len() + 1)).collect();
        at.extend([0, stream.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|two| &stream.as_bytes()[two[0]..two[1]]).collect();
        let split = heard(*format, &pieces);
        prop_assert_eq!((&split.0, &split.1), (&whole.0, &whole.1), "{}", name);
        prop_assert_eq!(split.2.map(plain), whole.2.map(plain), "{}", name);
    }
}

#[test]
fn every_recording_says_something_or_why_not() {
    for (name, format, stream) in recordings() {
        let (text, thinking, reply) = heard(format, &[stream.as_bytes()]);
        match reply {
            Ok(reply) => {
                let message = reply.message;
                assert_eq!(message.content.as_deref().unwrap_or_default(), text, "{name}");
                assert_eq!(message.thinking.as_deref().unwrap_or_default(), thinking, "{name}");
                assert!(!text.is_empty() || !thinking.is_empty() || message.tool_calls.is_some(), "{name}");
                assert!(reply.done_reason.is_some(), "{name}");
            }
            Err(why) => assert!(name.contains("error"), "{name}: {why}"),
        }
    }
}

/// The calls of a reply: identity, name, arguments.
fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
    let calls = reply.message.tool_calls.iter().flatten();
    calls.map(|call| (call.id.as_deref().unwrap(), &*call.function.name, &*call.function.arguments)).collect()
}

#[test]
fn calls_stop_reasons_and_tokens_are_those_of_the_server() {
    let reply = |folder: &str, name: &str, format| heard(format, &[stream(folder, name).as_bytes()]).2.unwrap();
    let native = reply("api-chat", "stream-thinking-tools.txt", Format::Ollama);
    assert_eq!(native.message.thinking.as_deref(), Some("The user wants weather. Fine."));
    assert_eq!(native.message.content.as_deref(), Some("Let me look."));
    assert_eq!(calls(&native)[0], ("call_1", "get_weather", "{\"city\":\"K\\u00f6ln\"}"));
    assert_eq!(calls(&native).len(), 3);
    assert_eq!((native.input_tokens, native.output_tokens), (Some(26), Some(28)));

    let openai = reply("chat-completions", "stream-tools.txt", Format::OpenAi);
    assert_eq!(calls(&openai)[1], ("call_b", "rm", "{\"path\":\"/\"}"));
    assert_eq!(openai.done_reason.as_deref(), Some("tool_calls"));

    let anthropic = reply("messages", "stream-anthropic-tool-use.txt", Format::Anthropic);
    assert_eq!(anthropic.done_reason.as_deref(), Some("tool_use"));
    assert_eq!(calls(&anthropic).len(), 1);
    assert_eq!((anthropic.input_tokens, anthropic.output_tokens), (Some(25), Some(89)));
}

#[test]
fn thinking_keeps_the_signature_that_its_server_wants_back() {
    let stream = stream("messages", "stream-anthropic-redacted-thinking.txt");
    let reply = heard(Format::Anthropic, &[stream.as_bytes()]).2.unwrap();
    let back = &reply.message.extra["wire"];
    assert_eq!(back["model"], "p/m");
    assert_eq!(back["thinking"][0]["thinking"], "Hm.");
    assert!(back["thinking"][0]["signature"].as_str().unwrap().starts_with("EqQBCgIYAhIM1gbc"));
    assert_eq!(back["thinking"][1]["type"], "redacted_thinking");
    assert!(back["thinking"][1]["data"].as_str().unwrap().starts_with("EmwKAhgBEgy3va3"));
}

#[test]
fn tools_that_ran_at_the_server_are_not_called_again() {
    let stream = stream("messages", "stream-anthropic-mcp.txt");
    let reply = heard(Format::Anthropic, &[stream.as_bytes()]).2.unwrap();
    assert_eq!(reply.message.tool_calls, None);
    assert_eq!(reply.message.content.as_deref(), Some("It said hi."));
}

/// A stream of chat completions with these calls.
fn calling(calls: Value) -> String {
    let chunk = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let said = chunk(json!({"index": 0, "delta": {"tool_calls": calls}}));
    said + &chunk(json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"})) + "data: [DONE]\n\n"
}

#[test]
fn malformed_arguments_stay_as_they_are() {
    for arguments in ["{\"path\": ", "not json", "[1]", ""] {
        let stream = calling(json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": arguments}}]));
        let reply = heard(Format::OpenAi, &[stream.as_bytes()]).2.unwrap();
        assert_eq!(calls(&reply), [("a", "ls", arguments)]);
    }
}

#[tokio::test]
async fn each_call_has_an_identity_that_no_other_has() {
    let body = |id: &str, index: u32| json!({"index": index, "id": id, "function": {"name": "ls", "arguments": "{}"}});
    let stream = calling(json!([body("known", 0), body("own", 1), body("", 2)]));
    let host = Host::start(vec![Served::events(&[&stream])]).await;
    let mut question = Question::new("x");
    let before = Message { tool_calls: Some(vec![call("known", "ls", "{}")]), ..Message::new("assistant", "") };
    question.messages.push(before);
    let reply = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap();
    let ids: Vec<&str> = calls(&reply).iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids[1], "own");
    assert!(
        ids[0] != "known" && ids[0].starts_with("call_") && ids[2].starts_with("call_") && ids[0] != ids[2],
        "{ids:?}"
    );
}

#[tokio::test]
async fn a_tool_is_called_by_its_own_name_whatever_the_wire_takes() {
    let tools = vec![tool("files: read", json!({}))];
    let name = crate::model::names::on_wire("files: read").into_owned();
    let stream = calling(json!([{"index": 0, "id": "a", "function": {"name": name, "arguments": "{}"}}]));
    let host = Host::start(vec![Served::events(&[&stream])]).await;
    let question = Question { tools, ..Question::new("x") };
    let reply = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap();
    assert_eq!(calls(&reply), [("a", "files: read", "{}")]);
    assert_eq!(host.asked("/v1/chat/completions")[0]["tools"][0]["function"]["name"], name);
}

#[tokio::test]
async fn each_format_streams_from_a_server() {
    for (format, kind, folder, file, text) in [
        (Format::Ollama, "application/x-ndjson", "api-chat", "stream-thinking-tools.txt", "Let me look."),
        (Format::OpenAi, "text/event-stream; charset=utf-8", "chat-completions", "stream-ollama-thinking.txt", ""),
        (Format::Anthropic, "text/event-stream", "messages", "stream-anthropic-thinking.txt", "27 * 453 = 12231"),
    ] {
        let stream = stream(folder, file);
        let pieces: Vec<&str> = stream.split_inclusive('\n').collect();
        let host = Host::start(vec![Served::stream(kind, &pieces)]).await;
        let question = Question::new("x");
        let model = Model { prices: Some(Prices { input: 1e6, output: 1e6 }), ..host.model("p/m", format) };
        let reply = question.ask(&model).await.unwrap();
        assert_eq!(question.listener.all(false), reply.message.content.as_deref().unwrap_or_default(), "{file}");
        assert_eq!(question.listener.all(true), reply.message.thinking.as_deref().unwrap_or_default(), "{file}");
        assert!(question.listener.all(false).contains(text) && !question.listener.all(true).is_empty(), "{file}");
        let tokens = reply.input_tokens.zip(reply.output_tokens);
        assert_eq!(reply.cost, tokens.map(|(input, output)| (input + output) as f64), "{file}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_taken_too() {
    for (format, body) in [
        (
            Format::Ollama,
            json!({"message": {"role": "assistant", "content": "Hello.", "thinking": "Hm."},
            "done": true, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2}),
        ),
        (
            Format::OpenAi,
            json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello.", "reasoning_content": "Hm."}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        ),
        (
            Format::Anthropic,
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "Hello."}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 2}}),
        ),
    ] {
        let host = Host::start(vec![Served::stream("application/json", &[&body.to_string()])]).await;
        let question = Question::new("x");
        let reply = question.ask(&host.model("p/m", format)).await.unwrap();
        assert_eq!(
            (question.listener.all(true), question.listener.all(false)),
            ("Hm.".to_owned(), "Hello.".to_owned())
        );
        assert_eq!((reply.input_tokens, reply.output_tokens), (Some(3), Some(2)), "{format:?}");
    }
}

#[test]
fn what_a_gateways_hook_says_of_the_answer_is_noted() {
    let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n\
                  data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
                  \"hook\":{\"permission\":\"deny\",\"user_message\":\"No rm here.\"}}\n\ndata: [DONE]\n\n";
    let reply = heard(Format::OpenAi, &[stream.as_bytes()]).2.unwrap();
    assert_eq!(reply.note.as_deref(), Some("No rm here."));
    assert!(!Reader::new(Route::Chat).has_said());
}
