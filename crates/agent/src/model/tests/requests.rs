//! What servers are asked.

use gatehook_engine::events::Image;
use proptest::prelude::*;
use serde_json::json;

use super::world::*;
use crate::model::write::question;
use crate::model::*;

fn model(format: Format, id: &str) -> Model {
    let replay = Replay::parse("a.yaml", "- text: unused").unwrap();
    Model { format, id: id.into(), ..Model::replay(replay) }
}

fn written(model: &Model, asked: &Question) -> Value {
    let session = "s".into();
    serde_json::from_slice(&question(model, &asked.as_ask(&session)).unwrap()).unwrap()
}

fn message(value: Value) -> Message {
    serde_json::from_value(value).unwrap()
}

/// System, question, a call with thinking, its result, and a second question.
fn conversation() -> Question {
    let mut answer = Message::new("assistant", "I look.");
    answer.thinking = Some("Where is it?".into());
    answer.tool_calls = Some(vec![call("c1", "read file", "{\"path\": \"a\"}"), call("c2", "ls", "{broken")]);
    answer.extra.insert(
        "wire".into(),
        json!({"model": "p/m", "thinking": [
        {"type": "thinking", "thinking": "Where is it?", "signature": "sig"}]}),
    );
    let result = |id: &str, text: &str, failed: bool| {
        message(json!({"role": "tool", "tool_call_id": id, "content": text, "is_error": failed}))
    };
    Question {
        messages: vec![
            Message::new("system", "Be brief."),
            Message::new("system", "Be kind."),
            Message::new("user", "What is in a?"),
            answer,
            result("c1", "text", false),
            result("c2", "no such tool", true),
        ],
        tools: vec![tool("read file", json!({"type": "object", "properties": {"path": {}}})), tool("ls", json!({}))],
        ..Question::default()
    }
}

#[test]
fn chat_completions_are_asked_in_openais_words() {
    let asked = written(&model(Format::OpenAi, "p/m"), &conversation());
    let name = asked["tools"][0]["function"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("read_file_"), "{name}");
    let expected = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": "What is in a?"},
            {"role": "assistant", "content": "I look.", "reasoning_content": "Where is it?", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{\"path\": \"a\"}"}},
                {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
            {"role": "tool", "tool_call_id": "c2", "content": "no such tool"},
        ],
        "tools": [
            {"type": "function", "function": {"name": name, "description": "does read file",
                "parameters": {"type": "object", "properties": {"path": {}}}}},
            {"type": "function", "function": {"name": "ls", "description": "does ls",
                "parameters": {"type": "object", "properties": {}}}},
        ],
    });
    assert_eq!(asked, expected);
}

#[test]
fn ollama_is_asked_in_its_own_words() {
    let model = model(Format::Ollama, "p/m").with_window(8192);
    let options = json!({"temperature": 0.5, "think": true}).as_object().cloned().unwrap();
    let model = Model { options: Arc::new(options), max_tokens: Some(100), ..model };
    let asked = written(&model, &conversation());
    let name = asked["tools"][0]["function"]["name"].clone();
    assert_eq!(asked["options"], json!({"temperature": 0.5, "num_ctx": 8192, "num_predict": 100}));
    assert_eq!((&asked["think"], &asked["truncate"], &asked["stream"]), (&json!(true), &json!(false), &json!(true)));
    let expected = json!([
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        {"role": "user", "content": "What is in a?"},
        {"role": "assistant", "content": "I look.", "thinking": "Where is it?", "tool_calls": [
            {"id": "c1", "function": {"name": name, "arguments": {"path": "a"}}},
            {"id": "c2", "function": {"name": "ls", "arguments": {}}}]},
        {"role": "tool", "content": "text", "tool_name": name, "tool_call_id": "c1"},
        {"role": "tool", "content": "no such tool", "tool_name": "ls", "tool_call_id": "c2"},
    ]);
    assert_eq!(asked["messages"], expected);
}

#[test]
fn anthropic_is_asked_in_turns_of_blocks() {
    let mut conversation = conversation();
    conversation.messages.push(Message::new("system", "It is late."));
    let asked = written(&model(Format::Anthropic, "p/m"), &conversation);
    let name = asked["tools"][0]["name"].clone();
    let mark = json!({"type": "ephemeral"});
    assert_eq!(asked["max_tokens"], 8192);
    assert_eq!(asked["system"], json!([{"type": "text", "text": "Be brief.\n\nBe kind.", "cache_control": mark}]));
    assert_eq!(asked["tools"][1]["input_schema"], json!({"type": "object", "properties": {}}));
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "What is in a?"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Where is it?", "signature": "sig"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": name, "input": {"path": "a"}},
            {"type": "tool_use", "id": "c2", "name": "ls", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "text"}], "is_error": false},
            {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no such tool"}],
             "is_error": true},
            {"type": "text", "text": "<system>\nIt is late.\n</system>", "cache_control": mark}]},
    ]);
    assert_eq!(asked["messages"], expected);
}

#[test]
fn thinking_goes_back_to_its_own_model_and_only_within_its_round() {
    let thinks =
        |model: &Model, conversation: &Question| written(model, conversation).to_string().contains("Where is it?");
    for (format, other) in [(Format::OpenAi, "p/other"), (Format::Ollama, "p/other"), (Format::Anthropic, "p/other")] {
        let mut conversation = conversation();
        assert!(thinks(&model(format, "p/m"), &conversation), "{format:?}");
        assert!(!thinks(&model(format, other), &conversation), "{format:?}");
        conversation.messages.push(Message::new("user", "And b?"));
        assert!(!thinks(&model(format, "p/m"), &conversation), "{format:?}");
    }
    assert!(!thinks(&model(Format::OpenAi, "openai/m"), &conversation()));
}

#[test]
fn images_go_where_each_format_has_them() {
    let image = |data: &str| {
        let image = Image { media_type: "image/png".into(), data: Some(data.into()), ..no_image() };
        Message { images: Some(vec![image, no_image()]), ..Message::new("user", "Look.") }
    };
    let asked = |format, data| {
        let asked = Question { messages: vec![image(data)], ..Question::default() };
        written(&model(format, "p/m"), &asked)["messages"][0].clone()
    };
    for data in ["QUJD", "data:image/png;base64,QUJD"] {
        assert_eq!(asked(Format::Ollama, data)["images"], json!(["QUJD"]));
        let source = json!({"type": "base64", "media_type": "image/png", "data": "QUJD"});
        assert_eq!(asked(Format::Anthropic, data)["content"][0], json!({"type": "image", "source": source}));
        let url = json!({"url": "data:image/png;base64,QUJD"});
        assert_eq!(asked(Format::OpenAi, data)["content"][1], json!({"type": "image_url", "image_url": url}));
    }
    let url = "https://example.test/a.png";
    assert_eq!(asked(Format::OpenAi, url)["content"][1]["image_url"]["url"], url);
    assert_eq!(asked(Format::Anthropic, url)["content"][0]["source"], json!({"type": "url", "url": url}));
}

fn no_image() -> Image {
    Image { sha256: String::new(), media_type: String::new(), bytes: 0, data: None }
}

#[test]
fn images_of_tools_follow_the_tools_where_these_can_only_speak() {
    let mut conversation = conversation();
    conversation.messages[4].images = Some(vec![Image { data: Some("QUJD".into()), ..no_image() }]);
    let asked = written(&model(Format::OpenAi, "p/m"), &conversation);
    let roles: Vec<_> = asked["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    assert_eq!(asked["messages"][5]["content"][1]["type"], "image_url");
    let asked = written(&model(Format::Anthropic, "p/m"), &conversation);
    assert_eq!(asked["messages"][2]["content"][0]["content"][1]["type"], "image");
}

#[test]
fn an_answer_without_words_is_none_that_a_server_refuses() {
    let asked = Question {
        messages: vec![
            Message { role: "assistant".into(), tool_calls: Some(vec![call("c", "ls", "")]), ..Message::default() },
            message(json!({"role": "tool", "tool_call_id": "c", "content": ""})),
            Message::new("assistant", " "),
            Message::new("user", ""),
        ],
        ..Question::default()
    };
    let openai = written(&model(Format::OpenAi, "p/m"), &asked);
    assert_eq!(openai["messages"][0]["content"], Value::Null);
    let anthropic = written(&model(Format::Anthropic, "p/m"), &asked);
    let roles: Vec<_> = anthropic["messages"].as_array().unwrap().iter().map(|turn| turn["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "{anthropic}");
}

#[test]
fn the_longest_answer_is_asked_for_by_each_ones_word() {
    let asked = |format, id: &str| {
        let model = Model { max_tokens: Some(7), ..model(format, id) };
        written(&model, &Question::new("x"))
    };
    assert_eq!(asked(Format::OpenAi, "openai/m")["max_completion_tokens"], 7);
    assert_eq!(asked(Format::OpenAi, "p/m")["max_tokens"], 7);
    assert_eq!(asked(Format::Anthropic, "p/m")["max_tokens"], 7);
    assert_eq!(asked(Format::Ollama, "p/m")["options"]["num_predict"], 7);
}

#[test]
fn options_stand_beside_what_is_asked_and_replace_nothing_of_it() {
    let options = json!({"temperature": 0, "stream": false, "messages": [], "max_tokens": 9, "seed": 1});
    for (format, at) in [(Format::OpenAi, ""), (Format::Anthropic, ""), (Format::Ollama, "/options")] {
        let options = Arc::new(options.as_object().cloned().unwrap());
        let model = Model { options, ..model(format, "p/m") };
        let session = "s".into();
        let asked = question(&model, &Question::new("x").as_ask(&session)).unwrap();
        let text = String::from_utf8(asked.to_vec()).unwrap();
        let asked: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(asked.pointer(&format!("{at}/temperature")), Some(&json!(0)), "{text}");
        assert_eq!((&asked["stream"], asked["messages"].as_array().map(Vec::len)), (&json!(true), Some(1)), "{text}");
        assert_eq!(text.matches("\"stream\"").count() + text.matches(":9").count(), 2, "{text}");
        assert_eq!(text.contains("seed"), format != Format::Anthropic);
    }
}

proptest! {
    #[test]
    fn a_question_is_the_same_after_any_other(places in prop::collection::vec((0..7usize, 0..6usize), 1..8)) {
        let extras = [
            Message::new("user", "And b?"),
            Message::new("system", "It is late."),
            message(json!({"role": "tool", "tool_call_id": "c1", "content": "other"})),
            Message::new("assistant", "\"So.\"\n"),
        ];
        for format in [Format::OpenAi, Format::Ollama, Format::Anthropic] {
            let (asked_before, mut conversation) = (model(format, "p/m"), conversation());
            for (place, what) in &places {
                let place = (*place).min(conversation.messages.len());
                match extras.get(*what) {
                    Some(extra) => conversation.messages.insert(place, extra.clone()),
                    None => conversation.messages.truncate(place.max(1)),
                }
                let fresh = written(&model(format, "p/m"), &conversation);
                prop_assert_eq!(written(&asked_before, &conversation), fresh, "{:?}", format);
            }
        }
    }
}
