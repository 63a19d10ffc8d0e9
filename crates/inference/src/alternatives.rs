//! What the model might have said instead: tokens beside those of its answer, in `top_logprobs`.
//!
//! No hook is shown them, and one of them may say what a hook would have taken out. Where hooks judge the text, only what
//! says nothing new stays: the token itself, and what spells nothing.

use bytes::Bytes;

use crate::json::{At, Document, Edits, Kind};
use crate::stream::spelled;

/// Where an object may hold what is no part of the answer's form.
const FOREIGN: &[&[u8]] = &[b"arguments", b"input", b"tool_calls", b"function_call", b"usage"];

/// The document without alternatives to the answer's tokens; `None` where it has none.
pub(crate) fn without(document: &Document) -> Option<Bytes> {
    // Nearly no frame has any.
    if !document.has_string("top_logprobs") {
        return None;
    }
    let mut edits = Edits::default();
    look(document, Document::ROOT, &mut edits);
    (!edits.is_empty()).then(|| edits.apply(document))
}

/// Looks for log probabilities in a value.
fn look(document: &Document, at: At, edits: &mut Edits) {
    document.elements(at).for_each(|element| look(document, element, edits));
    for (key, value) in document.members(at) {
        match &*document.key(key) {
            b"logprobs" => tokens(document, value, edits),
            key if FOREIGN.contains(&key) => {}
            _ => look(document, value, edits),
        }
    }
}

/// Log probabilities: entries of tokens in lists, or lists of tokens and of what might have stood there.
fn tokens(document: &Document, at: At, edits: &mut Edits) {
    document.elements(at).for_each(|element| tokens(document, element, edits));
    for (key, value) in document.members(at) {
        if *document.key(key) != *b"top_logprobs" {
            tokens(document, value, edits);
            continue;
        }
        let mut own = document.some(at, "tokens").into_iter().flat_map(|tokens| document.elements(tokens));
        let entry = document.some(at, "token").map(|_| at);
        for alternative in document.elements(value) {
            let own = own.next().or(entry);
            match document.kind(alternative) {
                Kind::Object if document.some(alternative, "token").is_none() => {
                    named(document, alternative, own, edits)
                }
                _ if says_more(document, alternative, own) => edits.remove(value, alternative),
                _ => {}
            }
        }
        named(document, value, entry, edits);
    }
}

/// Alternatives that are the keys of an object.
fn named(document: &Document, object: At, own: Option<At>, edits: &mut Edits) {
    let own = own.and_then(|own| spelled(document, own));
    for (key, value) in document.members(object) {
        let name = document.key(key);
        if !name.is_empty() && own.as_deref() != Some(&*name) {
            edits.remove(object, value);
        }
    }
}

fn says_more(document: &Document, alternative: At, own: Option<At>) -> bool {
    let said = spelled(document, alternative);
    said.is_none() || (said != own.and_then(|own| spelled(document, own)) && said.is_none_or(|said| !said.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn left(value: &Value) -> Option<Value> {
        let document = Document::read(value.to_string().into()).unwrap();
        without(&document).map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn the_token_itself_stays_and_what_might_have_stood_there_goes() {
        let token = |token: &str| json!({"token": token, "logprob": -0.1, "bytes": token.as_bytes()});
        let entry = |own: &str, top: &[&str]| {
            let mut entry = token(own);
            entry["top_logprobs"] = top.iter().map(|other| token(other)).collect();
            entry
        };
        let (came, want) = (entry("Hi", &["Hi", "falcon", "", "hi"]), entry("Hi", &["Hi", ""]));
        for (came, want) in [
            (
                json!({"choices": [{"logprobs": {"content": [came]}}]}),
                json!({"choices": [{"logprobs": {"content": [want]}}]}),
            ),
            (
                json!({"choices": [{"logprobs": {"refusal": [came]}}]}),
                json!({"choices": [{"logprobs": {"refusal": [want]}}]}),
            ),
            (json!({"logprobs": [came]}), json!({"logprobs": [want]})),
            (
                json!({"response": {"output": [{"content": [{"logprobs": [came]}]}]}}),
                json!({"response": {"output": [{"content": [{"logprobs": [want]}]}]}}),
            ),
            (
                json!({"choices": [{"logprobs": {"tokens": ["a", "b"], "top_logprobs": [{"a": -1, "falcon": -2}, {"b": -1}]}}]}),
                json!({"choices": [{"logprobs": {"tokens": ["a", "b"], "top_logprobs": [{"a": -1}, {"b": -1}]}}]}),
            ),
            (
                json!({"logprobs": [{"token": "a", "top_logprobs": {"a": -1, "falcon": -2}}]}),
                json!({"logprobs": [{"token": "a", "top_logprobs": {"a": -1}}]}),
            ),
            (
                json!({"logprobs": [{"token": "a", "top_logprobs": ["a", "falcon", 7]}]}),
                json!({"logprobs": [{"token": "a", "top_logprobs": ["a"]}]}),
            ),
        ] {
            assert_eq!(left(&came), Some(want), "{came}");
        }
    }

    #[test]
    fn a_key_may_be_written_with_escapes() {
        let came = r#"{"logprobs":[{"token":"a","top\u005flogprobs":[{"token":"falcon"}]}]}"#;
        let document = Document::read(came.into()).unwrap();
        assert_eq!(without(&document).unwrap(), r#"{"logprobs":[{"token":"a","top\u005flogprobs":[]}]}"#);
    }

    #[test]
    fn what_has_no_alternatives_stays_as_it_is() {
        for value in [
            json!({"choices": [{"logprobs": null}]}),
            json!({"logprobs": [{"token": "a", "top_logprobs": []}]}),
            json!({"logprobs": [{"token": "a", "top_logprobs": [{"token": "a"}, {"token": "", "bytes": []}]}]}),
            json!({"choices": [{"logprobs": {"tokens": ["a"], "top_logprobs": null}}]}),
            json!({"message": {"tool_calls": [{"function": {"arguments": {"logprobs": [{"top_logprobs": ["x"]}]}}}]}}),
            json!({"top_logprobs": 5}),
        ] {
            assert_eq!(left(&value), None, "{value}");
        }
    }
}
