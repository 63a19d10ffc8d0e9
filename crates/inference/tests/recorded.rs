//! What holds for every body: nothing changed is nothing changed, and one text changed is one text changed.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "what tests share is test code too")]

use std::path::{Path as FilePath, PathBuf};

use bytes::Bytes;
use gatehook_events::{Message, ModelOutput, ToolCall};
use gatehook_inference::{Path, Request, Response, Route, TextRoute};
use serde_json::Value;

const FOLDERS: &[(&str, &[Path])] = &[
    ("api-chat", &[Path::Route(Route::Chat)]),
    ("api-generate", &[Path::Route(Route::Generate)]),
    ("chat-completions", &[Path::Route(Route::ChatCompletions)]),
    ("completions", &[Path::Route(Route::Completions)]),
    ("responses", &[Path::Route(Route::Responses)]),
    ("messages", &[Path::Route(Route::Messages), Path::Text(TextRoute::CountTokens)]),
    ("embeddings", &[Path::Text(TextRoute::Embed), Path::Text(TextRoute::OpenAiEmbeddings)]),
];

/// Every recorded body whose name begins with `kind`, with the paths it may be sent to.
fn bodies(kind: &str) -> Vec<(Path, PathBuf, Bytes)> {
    let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/bodies");
    let mut found = Vec::new();
    for (folder, paths) in FOLDERS {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let file = entry.unwrap().path();
            if file.file_name().unwrap().to_string_lossy().starts_with(kind) {
                let body = Bytes::from(std::fs::read(&file).unwrap());
                found.extend(paths.iter().map(|path| (*path, file.clone(), body.clone())));
            }
        }
    }
    assert!(found.len() >= 6, "{found:?}");
    found
}

fn requests() -> Vec<(PathBuf, Bytes, Request)> {
    bodies("request")
        .into_iter()
        .map(|(path, file, body)| {
            let request = Request::read(path, body.clone()).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            (file, body, request)
        })
        .collect()
}

fn responses() -> Vec<(PathBuf, Bytes, Response)> {
    bodies("response")
        .into_iter()
        .filter_map(|(path, file, body)| match path {
            Path::Route(route) => {
                let response = Response::read(route, body.clone()).unwrap_or_else(|error| panic!("{file:?}: {error}"));
                Some((file, body, response))
            }
            Path::Text(_) => None,
        })
        .collect()
}

fn same(one: &Bytes, two: &Bytes) -> bool {
    one.as_ptr() == two.as_ptr() && one.len() == two.len()
}

/// The leaves in which two values differ.
fn differences(one: &Value, two: &Value, place: &str, found: &mut Vec<String>) {
    match (one, two) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{place}/{index}"), found);
            }
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, a) in a {
                differences(a, &b[key], &format!("{place}/{key}"), found);
            }
        }
        (a, b) if a == b => {}
        _ => found.push(place.to_owned()),
    }
}

/// Asserts that `after` is `before` with one value changed, and that the bytes around it are the same.
fn one_change(file: &FilePath, before: &[u8], after: &[u8]) {
    let parse =
        |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    let mut found = Vec::new();
    differences(&parse(before), &parse(after), "", &mut found);
    assert_eq!(found.len(), 1, "{file:?}: {found:?}\n{}", String::from_utf8_lossy(after));
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let changed: Value = parse(before).pointer(&found[0]).unwrap().clone();
    let longest = serde_json::to_string(&changed).unwrap().len() * 6 + 8;
    assert!(before.len() - head.min(before.len()) - tail.min(before.len() - head) <= longest, "{file:?}");
}

#[test]
fn a_request_that_nothing_rewrites_keeps_its_very_bytes() {
    for (file, body, request) in requests() {
        assert!(same(&request.unchanged(), &body), "{file:?}");
        assert!(same(&request.rewrite(&request.view().messages).unwrap(), &body), "{file:?}");
        assert!(same(&request.rewrite(&request.messages_with_images()).unwrap(), &body), "{file:?}");
        let roles: Vec<Message> =
            request.view().messages.iter().map(|m| Message { role: m.role.clone(), ..Message::default() }).collect();
        assert!(same(&request.rewrite(&roles).unwrap(), &body), "{file:?}");
    }
}

#[test]
fn a_rewrite_that_went_through_json_keeps_the_bytes() {
    for (file, body, request) in requests() {
        let text = serde_json::to_string(&request.view().messages).unwrap();
        let back: Vec<Message> = serde_json::from_str(&text).unwrap();
        assert!(same(&request.rewrite(&back).unwrap(), &body), "{file:?}");
    }
}

#[test]
fn a_rewrite_of_one_text_changes_that_text_alone() {
    let mut texts = 0;
    for (file, body, request) in requests() {
        let shown = request.view().messages.to_vec();
        for index in 0..shown.len() {
            for change in changes(&shown[index]) {
                let mut messages = shown.clone();
                messages[index] = change;
                match request.rewrite(&messages) {
                    Ok(after) => {
                        texts += 1;
                        one_change(&file, &body, &after);
                        let again = Request::read(request.path(), after).unwrap();
                        assert_eq!(again.view().messages[index], messages[index], "{file:?}");
                    }
                    Err(why) => assert!(
                        why.reason.contains("signed") || why.reason.contains("encrypted"),
                        "{file:?} {index}: {why}"
                    ),
                }
            }
        }
    }
    assert!(texts > 60, "{texts}");
}

/// The message with one of its texts changed, for each of them.
fn changes(message: &Message) -> Vec<Message> {
    let new = "rewritten \"\\\u{1f600}\n\u{1}é";
    let mut changes = Vec::new();
    if message.content.is_some() {
        changes.push(Message { content: Some(new.into()), ..message.clone() });
    }
    if message.thinking.is_some() {
        changes.push(Message { thinking: Some(new.into()), ..message.clone() });
    }
    for index in 0..message.tool_calls.iter().flatten().count() {
        let mut changed = message.clone();
        let call = &mut changed.tool_calls.as_mut().unwrap()[index];
        call.function.arguments = r#"{"rewritten": true}"#.into();
        changes.push(changed);
    }
    changes
}

#[test]
fn any_message_can_be_left_out() {
    for (file, _, request) in requests() {
        let shown = request.view().messages.to_vec();
        for index in 0..shown.len() {
            let mut messages = shown.clone();
            messages.remove(index);
            if let Ok(after) = request.rewrite(&messages) {
                let again = Request::read(request.path(), after.clone())
                    .unwrap_or_else(|error| panic!("{file:?}: {error}: {after:?}"));
                let texts =
                    |list: &[Message]| list.iter().map(|m| (m.role.clone(), m.content.clone())).collect::<Vec<_>>();
                assert_eq!(texts(&again.view().messages), texts(&messages), "{file:?} without {index}");
            }
        }
    }
}

#[test]
fn a_response_that_nothing_rewrites_keeps_its_very_bytes() {
    for (file, body, response) in responses() {
        assert!(same(&response.rewrite(&[]).unwrap(), &body), "{file:?}");
        let outputs: Vec<ModelOutput> = response.choices().iter().map(|choice| choice.output.clone()).collect();
        assert!(same(&response.rewrite(&outputs).unwrap(), &body), "{file:?}");
        let blank = vec![ModelOutput::default(); outputs.len()];
        assert!(same(&response.rewrite(&blank).unwrap(), &body), "{file:?}");
    }
}

#[test]
fn a_rewrite_of_one_output_changes_that_output_alone() {
    for (file, body, response) in responses() {
        for (index, choice) in response.choices().iter().enumerate() {
            let output = &choice.output;
            let more = |text: &str| Some(format!("{text} \"more\"").into());
            let mut changes = Vec::new();
            if let Some(text) = &output.text {
                changes.push(ModelOutput { text: more(text), ..ModelOutput::default() });
            }
            if let Some(thinking) = &output.thinking {
                changes.push(ModelOutput { thinking: more(thinking), ..ModelOutput::default() });
            }
            for call in 0..output.tool_calls.iter().flat_map(|calls| calls.iter()).count() {
                let mut calls: Vec<ToolCall> = output.tool_calls.as_ref().unwrap().to_vec();
                calls[call].function.arguments = r#"{"rewritten":1}"#.into();
                changes.push(ModelOutput { tool_calls: Some(calls.into()), ..ModelOutput::default() });
            }
            for change in changes {
                let mut outputs = vec![ModelOutput::default(); response.choices().len()];
                outputs[index] = change.clone();
                let after = response.rewrite(&outputs).unwrap_or_else(|why| panic!("{file:?}: {why}"));
                one_change(&file, &body, &after);
                let again = Response::read(response.route(), after).unwrap();
                let again = &again.choices()[index].output;
                assert_eq!(again.text, change.text.or(output.text.clone()), "{file:?}");
                assert_eq!(again.thinking, change.thinking.or(output.thinking.clone()), "{file:?}");
            }
        }
    }
}

#[test]
fn an_emptied_output_is_empty_and_still_a_valid_body() {
    for (file, _, response) in responses() {
        let empty = ModelOutput { text: Some("".into()), thinking: Some("".into()), tool_calls: Some([].into()) };
        let after = response.rewrite(&vec![empty; response.choices().len()]).unwrap();
        let again = Response::read(response.route(), after.clone()).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        assert_eq!(again.choices().len(), response.choices().len(), "{file:?}");
        for choice in again.choices() {
            let left = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
            assert_eq!(left(&choice.output.text) + &left(&choice.output.thinking), "", "{file:?}: {after:?}");
            assert_eq!(choice.output.tool_calls, None, "{file:?}");
            let reason = choice.done_reason.as_deref().unwrap_or_default();
            assert!(!reason.contains("tool"), "{file:?}: {reason}");
        }
    }
}
