//! One question on the wire, as Ollama, OpenAI and what is compatible, and Anthropic take it:
//! <https://docs.ollama.com/api/chat>, <https://platform.openai.com/docs/api-reference/chat>,
//! <https://docs.anthropic.com/en/api/messages>.

use gatehook_engine::events::TokenUsage;
use gatehook_engine::handlers::model::ResponseSchema;
use gatehook_inference::{ReadError, Response, Route, Tokens};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Uri};
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::Headers;
use crate::config::UpstreamKind;

/// Tokens that Anthropic may answer with; it wants to be told.
const MAX_TOKENS: u32 = 1024;

/// The route of a question.
pub(super) fn route(kind: UpstreamKind) -> Route {
    match kind {
        UpstreamKind::Ollama => Route::Chat,
        UpstreamKind::OpenAi => Route::ChatCompletions,
        UpstreamKind::Anthropic => Route::Messages,
    }
}

/// Where a question goes; the base address may end in `/v1`, as libraries want it, or not.
pub(super) fn url(kind: UpstreamKind, base: &Uri) -> Option<Uri> {
    let path = route(kind).path();
    let before = base.path().trim_end_matches('/');
    let before = if path.starts_with("/v1/") { before.strip_suffix("/v1").unwrap_or(before) } else { before };
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(format!("{before}{path}").parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// What a server wants to be told besides.
pub(super) fn headers(kind: UpstreamKind, api_key: Option<&HeaderValue>) -> Headers {
    let mut headers = Headers::new();
    if kind == UpstreamKind::Anthropic {
        headers.push((HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01")));
        headers.extend(api_key.map(|key| (HeaderName::from_static("x-api-key"), key.clone())));
    } else if let Some(Ok(mut bearer)) =
        api_key.map(|key| HeaderValue::from_bytes(&[b"Bearer ", key.as_bytes()].concat()))
    {
        bearer.set_sensitive(true);
        headers.push((AUTHORIZATION, bearer));
    }
    headers
}

/// The question.
pub(super) fn body(
    kind: UpstreamKind,
    model: &str,
    system: &str,
    user: &str,
    schema: Option<&ResponseSchema>,
) -> Bytes {
    let messages = json!([{"role": "system", "content": system}, {"role": "user", "content": user}]);
    let mut body = match kind {
        // A prompt that is too long must not lose its beginning, which says what to judge by.
        UpstreamKind::Ollama => json!({
            "model": model, "messages": messages, "stream": false, "options": {"temperature": 0},
            "truncate": false, "shift": false,
        }),
        UpstreamKind::OpenAi => json!({"model": model, "messages": messages}),
        UpstreamKind::Anthropic => json!({
            "model": model, "max_tokens": MAX_TOKENS, "system": system,
            "messages": [{"role": "user", "content": user}],
        }),
    };
    if let (Some(ResponseSchema { name, schema }), Some(body)) = (schema, body.as_object_mut()) {
        let name = plain_name(name);
        match kind {
            UpstreamKind::Ollama => drop(body.insert("format".to_owned(), schema.clone())),
            UpstreamKind::OpenAi => {
                let wanted = json!({"name": name, "schema": schema, "strict": is_strict(schema)});
                body.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": wanted}));
            }
            UpstreamKind::Anthropic => {
                let tool = json!({"name": name, "description": "Gives the answer.", "input_schema": schema});
                body.insert("tools".to_owned(), json!([tool]));
                body.insert("tool_choice".to_owned(), json!({"type": "tool", "name": name}));
            }
        }
    }
    body.to_string().into()
}

/// A name as both vendors take one.
fn plain_name(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || matches!(char, '_' | '-') { char } else { '_' };
    name.chars().take(64).map(plain).collect()
}

/// Whether OpenAI takes a schema as a strict one: with all of its properties required, and no others.
fn is_strict(schema: &Value) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let all = required.zip(properties).is_some_and(|(required, properties)| {
        properties.keys().all(|name| required.iter().any(|required| required == name))
    });
    all && schema.get("additionalProperties") == Some(&Value::Bool(false))
}

/// The text of an answer, and the tokens it took. An answer without text gives an empty one.
pub(super) fn answer(
    kind: UpstreamKind,
    body: Bytes,
    schema: Option<&ResponseSchema>,
) -> Result<(String, Option<TokenUsage>), ReadError> {
    let response = Response::read(route(kind), body)?;
    let tokens = response.usage().map(|usage| Tokens::of(route(kind), usage));
    let usage = tokens.map(|tokens| TokenUsage { input_tokens: tokens.input, output_tokens: tokens.output });
    let output = response.choices().first().map(|choice| &choice.output);
    let called = schema.filter(|_| kind == UpstreamKind::Anthropic).and_then(|schema| {
        let name = plain_name(&schema.name);
        let calls = output?.tool_calls.as_deref()?.iter().filter(|call| *call.function.name == name);
        // Who answers twice has not answered: both together are nothing that can be read.
        calls.map(|call| call.function.arguments.to_string()).reduce(|first, other| first + &other)
    });
    let text = called.or_else(|| output?.text.as_deref().map(str::to_owned));
    Ok((text.unwrap_or_default(), usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> ResponseSchema {
        let schema = json!({"type": "object", "properties": {"decision": {}}, "required": ["decision"],
                            "additionalProperties": false});
        ResponseSchema { name: "a verdict".to_owned(), schema }
    }

    fn asked(kind: UpstreamKind, schema: Option<&ResponseSchema>) -> Value {
        serde_json::from_slice(&body(kind, "m", "sys", "usr", schema)).unwrap()
    }

    #[test]
    fn a_base_address_may_end_in_its_version_or_not() {
        for (kind, base, url_wanted) in [
            (UpstreamKind::OpenAi, "http://h:1", "http://h:1/v1/chat/completions"),
            (UpstreamKind::OpenAi, "https://h/v1/", "https://h/v1/chat/completions"),
            (UpstreamKind::OpenAi, "https://h/openai/v1", "https://h/openai/v1/chat/completions"),
            (UpstreamKind::Anthropic, "https://h", "https://h/v1/messages"),
            (UpstreamKind::Ollama, "http://h/ollama/", "http://h/ollama/api/chat"),
        ] {
            assert_eq!(url(kind, &base.parse().unwrap()).unwrap(), url_wanted, "{base}");
        }
    }

    #[test]
    fn each_format_asks_for_the_schema_in_its_way() {
        let schema = verdict();
        assert_eq!(asked(UpstreamKind::Ollama, Some(&schema))["format"], schema.schema);
        let wanted = json!({"name": "a_verdict", "schema": schema.schema, "strict": true});
        assert_eq!(asked(UpstreamKind::OpenAi, Some(&schema))["response_format"]["json_schema"], wanted);
        let anthropic = asked(UpstreamKind::Anthropic, Some(&schema));
        assert_eq!(anthropic["tool_choice"], json!({"type": "tool", "name": "a_verdict"}));
        assert_eq!(anthropic["tools"][0]["input_schema"], schema.schema);
        assert_eq!((&anthropic["system"], &anthropic["messages"][0]["content"]), (&json!("sys"), &json!("usr")));
    }

    #[test]
    fn plain_text_is_asked_for_without_a_schema() {
        for kind in [UpstreamKind::Ollama, UpstreamKind::OpenAi, UpstreamKind::Anthropic] {
            let asked = asked(kind, None);
            for field in ["format", "response_format", "tools", "tool_choice"] {
                assert_eq!(asked.get(field), None, "{kind:?} {field}");
            }
        }
    }

    #[test]
    fn a_schema_with_optional_fields_is_not_strict() {
        assert!(is_strict(&verdict().schema));
        for schema in [json!({}), json!({"properties": {"a": {}}, "required": [], "additionalProperties": false})] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }

    #[test]
    fn answers_are_read_in_their_own_format() {
        let deny = r#"{"decision":"deny"}"#;
        let ollama = json!({"message": {"role": "assistant", "content": deny}, "done": true,
                            "prompt_eval_count": 5, "eval_count": 2});
        let openai = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": deny}}],
                            "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
        let input: Value = serde_json::from_str(deny).unwrap();
        let anthropic = json!({"role": "assistant", "content": [
                                   {"type": "text", "text": "I will answer."},
                                   {"type": "tool_use", "id": "t", "name": "a_verdict", "input": input}],
                               "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 2}});
        let usage = Some(TokenUsage { input_tokens: 5, output_tokens: 2 });
        for (kind, body) in
            [(UpstreamKind::Ollama, ollama), (UpstreamKind::OpenAi, openai), (UpstreamKind::Anthropic, anthropic)]
        {
            let found = answer(kind, body.to_string().into(), Some(&verdict())).unwrap();
            assert_eq!(found, (deny.to_owned(), usage), "{kind:?}");
        }
    }
    #[test]
    fn an_answer_that_is_given_twice_is_none() {
        let call = |decision: &str| json!({"type": "tool_use", "id": "t", "name": "a_verdict", "input": {"decision": decision}});
        let body = json!({"role": "assistant", "content": [call("allow"), call("deny")]});
        let (text, _) = answer(UpstreamKind::Anthropic, body.to_string().into(), Some(&verdict())).unwrap();
        assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
    }
}
