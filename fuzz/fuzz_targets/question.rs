//! Questions to models and what their servers answer, in the three wire formats that are spoken.
//!
//! The first byte says what and for whom: `0`, `1`, `2` an answer in the format of Ollama, OpenAI, Anthropic, `3` to `5`
//! one to a question with a schema; `6` to `8` a question, its lines the base address, the model, the system prompt and,
//! to the end, what the user says.

#![no_main]

use bytes::Bytes;
use gatehook_engine::handlers::model::ResponseSchema;
use gatehook_gateway::config::UpstreamKind;
use gatehook_gateway::wire;
use http::Uri;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const KINDS: [UpstreamKind; 3] = [UpstreamKind::Ollama, UpstreamKind::OpenAi, UpstreamKind::Anthropic];

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    let at = usize::from(first.wrapping_sub(b'0')) % 9;
    let (kind, schema) = (KINDS[at % 3], schema());
    match at {
        0..=2 => answer(kind, data, None),
        3..=5 => answer(kind, data, Some(&schema)),
        _ => question(kind, &String::from_utf8_lossy(data), &schema),
    }
});

fn schema() -> ResponseSchema {
    let schema = json!({"type": "object", "properties": {"decision": {"type": "string"}}, "required": ["decision"]});
    ResponseSchema { name: "a verdict".to_owned(), schema }
}

/// The text of an answer stands in it; what has lost its end is no answer.
fn answer(kind: UpstreamKind, body: &[u8], schema: Option<&ResponseSchema>) {
    let read = |body: &[u8]| wire::answer(kind, Bytes::copy_from_slice(body), schema);
    let Some((text, _)) = read(body) else { return };
    // Its own reader takes numbers of any size.
    if let Ok(answer) = serde_json::from_slice::<Value>(body) {
        let mut strings = Vec::new();
        gather(&answer, &mut strings);
        let is_call = schema.is_some() && kind == UpstreamKind::Anthropic;
        let begins = strings.iter().any(|part| !part.is_empty() && text.starts_with(part));
        assert!(is_call || text.is_empty() || begins, "{text:?} is nowhere in {answer}");
    }
    let body = body.trim_ascii();
    for len in [1, body.len() / 3, body.len() / 2, body.len() - 1] {
        assert!(read(&body[..len]).is_none(), "{:?} is an answer", String::from_utf8_lossy(&body[..len]));
    }
}

fn gather<'a>(value: &'a Value, strings: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => strings.push(text),
        Value::Array(values) => values.iter().for_each(|value| gather(value, strings)),
        Value::Object(fields) => fields.values().for_each(|value| gather(value, strings)),
        _ => {}
    }
}

/// A question says what it is told to, and goes to the host that was named.
fn question(kind: UpstreamKind, text: &str, schema: &ResponseSchema) {
    let mut lines = text.splitn(4, '\n');
    let [base, model, system, user] = [(); 4].map(|()| lines.next().unwrap_or_default());
    for schema in [None, Some(schema)] {
        let body: Value =
            serde_json::from_slice(&wire::body(kind, [model, system, user], schema)).expect("a question is JSON");
        assert_eq!(body["model"], *model);
        let said = |at: usize| &body["messages"][at]["content"];
        let (told, asked) =
            if kind == UpstreamKind::Anthropic { (&body["system"], said(0)) } else { (said(0), said(1)) };
        assert_eq!((told, asked), (&json!(system), &json!(user)));
    }
    let Ok(base) = base.parse::<Uri>() else { return };
    let Some(url) = wire::url(kind, &base) else { return };
    assert_eq!((url.scheme(), url.authority(), url.query()), (base.scheme(), base.authority(), None));
    let path = ["/api/chat", "/v1/chat/completions", "/v1/messages"].into_iter().find(|it| url.path().ends_with(it));
    assert!(path.is_some(), "{url}");
    assert!(base.path().contains("/v1/v1") || !url.path().contains("/v1/v1/"), "{url}");
}
