//! What holds for bodies that nobody thought of.
#![expect(clippy::indexing_slicing, reason = "what tests share is test code too")]

use bytes::Bytes;
use gatehook_events::{Message, ModelOutput};
use gatehook_inference::{Path, Request, Response, Route, TextRoute};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// A text that a person, a program or an attacker might send.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ -~]{0,20}", Just(String::new()), "[\\\\\"\n\u{0}-\u{1f}😀é]{0,8}"]
}

/// A field that no route knows.
fn unknown() -> impl Strategy<Value = (String, Value)> {
    (
        "x_[a-z]{1,8}",
        prop_oneof![Just(json!(null)), Just(json!({"deep": [1, {"a": 1.50}]})), text().prop_map(Value::from)],
    )
}

fn with_unknown(value: Value, (key, unknown): (String, Value)) -> Value {
    let mut value = value;
    value[key] = unknown;
    value
}

fn openai_content() -> impl Strategy<Value = Value> {
    let part = (text(), unknown(), 0..5u8).prop_map(|(text, unknown, kind)| match kind {
        0 => json!({"type": "image_url", "image_url": {"url": format!("https://example.test/{text}")}}),
        1 => json!({"type": "input_audio", "input_audio": {"data": text, "format": "wav"}}),
        2 => json!({"type": "mystery", "text": text}),
        _ => with_unknown(json!({"type": "text", "text": text}), unknown),
    });
    prop_oneof![text().prop_map(Value::from), prop::collection::vec(part, 0..4).prop_map(Value::from)]
}

fn openai_message() -> impl Strategy<Value = Value> {
    let role = select(vec!["system", "developer", "user", "assistant"]);
    (role, openai_content(), unknown(), text(), text(), 0..4u8).prop_map(
        |(role, content, unknown, name, arguments, calls)| {
            let mut message = with_unknown(json!({"role": role, "content": content}), unknown);
            if role == "assistant" && calls > 1 {
                let call = json!({"id": name, "type": "function", "function": {"name": name, "arguments": arguments}});
                message["tool_calls"] = vec![call; usize::from(calls) - 1].into();
            }
            message
        },
    )
}

fn native_message() -> impl Strategy<Value = Value> {
    let role = select(vec!["system", "user", "assistant", "tool"]);
    (role, text(), text(), unknown(), 0..4u8).prop_map(|(role, content, other, unknown, kind)| {
        let mut message = with_unknown(json!({"role": role, "content": content}), unknown);
        match kind {
            0 => message["thinking"] = other.into(),
            1 => message["images"] = json!([other]),
            2 if role == "assistant" => {
                message["tool_calls"] = json!([{"function": {"index": 0, "name": other, "arguments": {"a": other}}}]);
            }
            _ => {}
        }
        message
    })
}

fn anthropic_message() -> impl Strategy<Value = Value> {
    let block = (text(), text(), unknown(), 0..8u8).prop_map(|(text, other, unknown, kind)| match kind {
        0 => json!({"type": "thinking", "thinking": text, "signature": other}),
        1 => json!({"type": "redacted_thinking", "data": text}),
        2 => json!({"type": "tool_use", "id": other, "name": text, "input": {"a": text}}),
        3 => json!({"type": "tool_result", "tool_use_id": other, "content": [{"type": "text", "text": text}, {"type": "text", "text": other}]}),
        4 => json!({"type": "tool_result", "tool_use_id": other, "content": text}),
        5 => json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": text}}),
        _ => with_unknown(json!({"type": "text", "text": text}), unknown),
    });
    let content = prop_oneof![text().prop_map(Value::from), prop::collection::vec(block, 0..4).prop_map(Value::from)];
    (select(vec!["user", "assistant"]), content).prop_map(|(role, content)| json!({"role": role, "content": content}))
}

fn item() -> impl Strategy<Value = Value> {
    (text(), text(), unknown(), 0..8u8).prop_map(|(text, other, unknown, kind)| match kind {
        0 => json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": other}),
        1 => json!({"type": "function_call", "call_id": other, "name": other, "arguments": text}),
        2 => json!({"type": "function_call_output", "call_id": other, "output": text}),
        3 => json!({"type": "web_search_call", "action": text}),
        4 => json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}, {"type": "refusal", "refusal": other}]}),
        _ => with_unknown(json!({"role": "user", "content": text}), unknown),
    })
}

fn list(item: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(item, 0..6)
}

fn request() -> impl Strategy<Value = (Path, Value)> {
    let chat = list(openai_message())
        .prop_map(|list| (Route::ChatCompletions.into(), json!({"model": "m", "messages": list})));
    let native = list(native_message()).prop_map(|list| (Route::Chat.into(), json!({"model": "m", "messages": list})));
    let anthropic = (prop::option::of(text()), list(anthropic_message()))
        .prop_map(|(system, list)| (Route::Messages.into(), json!({"system": system, "messages": list})));
    let responses = (prop::option::of(text()), list(item())).prop_map(|(instructions, list)| {
        (Route::Responses.into(), json!({"instructions": instructions, "input": list}))
    });
    let generate = (prop::option::of(text()), text())
        .prop_map(|(system, prompt)| (Route::Generate.into(), json!({"system": system, "prompt": prompt})));
    let texts =
        prop::collection::vec(text(), 0..3).prop_map(|texts| (TextRoute::Embed.into(), json!({"input": texts})));
    prop_oneof![chat, native, anthropic, responses, generate, texts]
}

/// The value, spelled with odd spaces and needless escapes.
fn spell(value: &Value, seed: &mut u64, out: &mut String) {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let odd = (*seed >> 33) % 7;
    let space = ["", "", " ", "\n\t", "\r\n"][(odd % 5) as usize];
    out.push_str(space);
    match value {
        Value::Array(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                spell(item, seed, out);
            }
            out.push_str(space);
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                spell(&Value::from(key.as_str()), seed, out);
                out.push_str(space);
                out.push(':');
                spell(item, seed, out);
            }
            out.push_str(space);
            out.push('}');
        }
        Value::String(text) if odd == 3 => {
            out.push('"');
            text.encode_utf16().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            out.push('"');
        }
        other => out.push_str(&other.to_string()),
    }
    out.push_str(space);
}

fn spelled(value: &Value, mut seed: u64) -> Bytes {
    let mut out = String::new();
    spell(value, &mut seed, &mut out);
    out.into()
}

/// What a reader of the rewritten request sees is what was asked for: absent is unchanged.
fn obeyed(asked: &Message, seen: &Message) -> bool {
    let text = |asked: &Option<std::sync::Arc<str>>, seen: &Option<std::sync::Arc<str>>| {
        asked.as_deref().is_none_or(|asked| asked == seen.as_deref().unwrap_or_default())
    };
    asked.role == seen.role && text(&asked.content, &seen.content) && text(&asked.thinking, &seen.thinking)
}

/// The messages, those of a leading run of system messages in any order.
fn ordered(messages: &[Message]) -> Vec<Message> {
    let lead = messages.iter().take_while(|message| &*message.role == "system").count();
    let mut messages = messages.to_vec();
    messages[..lead].sort_by(|one, two| one.content.cmp(&two.content));
    messages
}

proptest! {
    #[test]
    fn rewriting_nothing_gives_the_same_bytes((path, body) in request(), seed in any::<u64>()) {
        let bytes = spelled(&body, seed);
        let request = Request::read(path, bytes.clone()).unwrap();
        prop_assert_eq!(request.unchanged().as_ptr(), bytes.as_ptr());
        if !request.view().messages.is_empty() {
            prop_assert_eq!(request.rewrite(&request.view().messages).unwrap().as_ptr(), bytes.as_ptr());
        }
    }

    #[test]
    fn a_text_that_is_rewritten_is_read_again(
        (path, body) in request(), seed in any::<u64>(), which in any::<Index>(), new in text(),
    ) {
        let bytes = spelled(&body, seed);
        let request = Request::read(path, bytes.clone()).unwrap();
        let mut messages = request.view().messages.to_vec();
        let texts = |message: &Message| message.content.is_some() && !message.extra.contains_key("value");
        let Some(index) = (0..messages.len()).cycle().skip(which.index(messages.len() + 1)).take(messages.len())
            .find(|index| texts(&messages[*index])) else { return Ok(()) };
        messages[index].content = Some(new.into());
        let after = request.rewrite(&messages).unwrap();
        let again = Request::read(path, after.clone()).unwrap();
        prop_assert_eq!(&*again.view().messages, messages.as_slice());
        prop_assert_eq!(&again.view().options, &request.view().options);
        let head = bytes.iter().zip(&after).take_while(|(a, b)| a == b).count();
        let tail = bytes.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
        // At most one string has changed: between head and tail no quote of another one stands.
        let middle = bytes.get(head..bytes.len().saturating_sub(tail)).unwrap_or_default();
        prop_assert!(!middle.windows(3).any(|window| window == b"\":\"" || window == b"\",\""), "{:?}", middle);
    }

    #[test]
    fn a_list_that_is_rewritten_is_read_again_or_refused(
        (path, body) in request(), seed in any::<u64>(),
        steps in prop::collection::vec((0..4u8, any::<Index>(), text()), 1..5),
    ) {
        let request = Request::read(path, spelled(&body, seed)).unwrap();
        let mut messages = request.view().messages.to_vec();
        for (kind, which, text) in steps {
            let index = which.index(messages.len() + 1);
            match kind {
                0 => messages.insert(index, Message::new("user", &text)),
                1 => messages.insert(index, Message::new("system", &text)),
                _ if index == messages.len() => {}
                2 => drop(messages.remove(index)),
                // A new message of a text and something else becomes two.
                _ if messages[index].content.is_none() => {}
                _ => messages[index].content = Some(text.as_str().into()),
            }
        }
        if let Ok(after) = request.rewrite(&messages) {
            let again = Request::read(path, after.clone()).unwrap_or_else(|error| panic!("{error}: {after:?}"));
            let (messages, seen) = (ordered(&messages), ordered(&again.view().messages));
            // Messages that an edit emptied of all they held are gone.
            let fits = seen.len() <= messages.len()
                && (seen.len() < messages.len() || messages.iter().zip(seen.iter()).all(|(asked, seen)| obeyed(asked, seen)));
            prop_assert!(fits, "asked {messages:?}\nseen {seen:?}\nin {after:?}");
        }
    }

    #[test]
    fn no_damage_makes_it_panic(
        (path, body) in request(), cut in any::<Index>(), byte in any::<u8>(), seed in any::<u64>(),
    ) {
        let mut bytes = spelled(&body, seed).to_vec();
        let at = cut.index(bytes.len());
        let _ = Request::read(path, bytes[..at].to_vec().into());
        bytes[at] = byte;
        if let Ok(request) = Request::read(path, bytes.clone().into()) {
            let _ = request.fingerprint("k");
            let _ = request.rewrite(&[Message::new("user", "x")]);
        }
        for route in Route::ALL {
            if let Ok(response) = Response::read(*route, bytes.clone().into()) {
                let _ = response.rewrite(&[ModelOutput { text: Some("".into()), ..ModelOutput::default() }]);
            }
        }
    }

    #[test]
    fn spelling_does_not_count_for_the_fingerprint((path, body) in request(), one in any::<u64>(), two in any::<u64>()) {
        let read = |seed| Request::read(path, spelled(&body, seed)).unwrap().fingerprint("key");
        prop_assert_eq!(read(one), read(two));
    }

    #[test]
    fn blocks_of_an_answer_are_rewritten_as_one_text(
        blocks in prop::collection::vec(("[ab ]{0,4}", any::<bool>()), 0..5), new in "[ab ]{0,8}", seed in any::<u64>(),
    ) {
        let content: Vec<Value> = blocks.iter().map(|(text, plain)| match plain {
            true => json!({"type": "text", "text": text}),
            false => json!({"type": "tool_use", "id": text, "name": "f", "input": {"a": text}}),
        }).collect();
        let bytes = spelled(&json!({"content": content, "stop_reason": "end_turn"}), seed);
        let response = Response::read(Route::Messages, bytes).unwrap();
        let output = ModelOutput { text: Some(new.as_str().into()), ..ModelOutput::default() };
        let after = response.rewrite(&[output]).unwrap();
        let again = Response::read(Route::Messages, after).unwrap();
        let seen = again.choices()[0].output.text.clone();
        prop_assert_eq!(seen.as_deref().unwrap_or_default(), new);
        prop_assert_eq!(&again.choices()[0].output.tool_calls, &response.choices()[0].output.tool_calls);
    }
}
