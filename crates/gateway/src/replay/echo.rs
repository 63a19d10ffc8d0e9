//! Answers every route with the last message, so that what reached the upstream can be seen.

use gatehook_guard::Refusal;
use gatehook_inference::{ErrorKind, Path, Request, Route, TextRoute};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::Script;
use crate::body::Body;

/// The model that it says it is.
const MODEL: &str = "echo";

pub(super) fn answer(
    hooked: Option<Path>,
    method: &Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Response<Body>, Refusal> {
    let Some(hooked) = hooked else { return list(method, path) };
    let request = Request::read(hooked, body.into())
        .map_err(|error| Refusal::new(ErrorKind::Malformed).saying(error.to_string()))?;
    let view = request.view();
    let last = view.messages.iter().rev().find_map(|message| message.content.clone()).unwrap_or_default();
    let echo = Echo { text: format!("You said: {last}"), model: view.model.as_deref().unwrap_or(MODEL).to_owned() };
    Ok(match hooked {
        Path::Route(route) if view.stream => echo.stream(route),
        Path::Route(route) => json_response(&echo.whole(route)),
        Path::Text(TextRoute::CountTokens) => json_response(&json!({"input_tokens": last.len().div_ceil(4)})),
        Path::Text(TextRoute::Embed) => json_response(&json!({"model": echo.model, "embeddings": [[0.0, 1.0]]})),
        Path::Text(TextRoute::Embeddings) => json_response(&json!({"embedding": [0.0, 1.0]})),
        Path::Text(TextRoute::OpenAiEmbeddings) => json_response(&json!({
            "object": "list", "model": echo.model, "usage": {"prompt_tokens": 1, "total_tokens": 1},
            "data": [{"object": "embedding", "index": 0, "embedding": [0.0, 1.0]}],
        })),
    })
}

fn list(method: &Method, path: &str) -> Result<Response<Body>, Refusal> {
    let body = match (method, path) {
        (&Method::GET, "/v1/models") => {
            json!({"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "gatehook"}]})
        }
        (&Method::GET, "/api/tags") => json!({"models": [{"name": MODEL, "model": MODEL}]}),
        (&Method::GET, "/api/version") => json!({"version": "0.0.0"}),
        _ => return Err(Refusal::new(ErrorKind::NotFound)),
    };
    Ok(json_response(&body))
}

struct Echo {
    text: String,
    model: String,
}

impl Echo {
    fn whole(&self, route: Route) -> Value {
        let Self { text, model } = self;
        match route {
            Route::Chat => json!({"model": model, "created_at": "1970-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": text}, "done": true, "done_reason": "stop"}),
            Route::Generate => json!({"model": model, "created_at": "1970-01-01T00:00:00Z",
                "response": text, "done": true, "done_reason": "stop"}),
            Route::ChatCompletions => json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0,
                "model": model, "choices": [{"index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text}}], "usage": usage()}),
            Route::Completions => json!({"id": "cmpl-1", "object": "text_completion", "created": 0, "model": model,
                "choices": [{"index": 0, "finish_reason": "stop", "text": text, "logprobs": null}], "usage": usage()}),
            Route::Responses => self.response(true),
            Route::Messages => json!({"id": "msg_1", "type": "message", "role": "assistant", "model": model,
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": 1, "output_tokens": 1}}),
        }
    }

    fn response(&self, done: bool) -> Value {
        let output = if done { json!([self.item(true)]) } else { json!([]) };
        json!({"id": "resp_1", "object": "response", "created_at": 0, "model": self.model, "output": output,
            "status": if done { "completed" } else { "in_progress" }, "parallel_tool_calls": true,
            "tool_choice": "auto", "tools": []})
    }

    fn item(&self, done: bool) -> Value {
        let content = if done { json!([self.part(&self.text)]) } else { json!([]) };
        json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content,
            "status": if done { "completed" } else { "in_progress" }})
    }

    fn part(&self, text: &str) -> Value {
        json!({"type": "output_text", "text": text, "annotations": []})
    }

    fn stream(&self, route: Route) -> Response<Body> {
        let events: Vec<Value> = match route {
            Route::Chat => self.lines(|text| json!({"message": {"role": "assistant", "content": text}})),
            Route::Generate => self.lines(|text| json!({"response": text})),
            Route::ChatCompletions => {
                let chunk = |delta: Value, reason: Value| {
                    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk",
                    "created": 0, "model": self.model,
                    "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
                };
                let begin = chunk(json!({"role": "assistant", "content": ""}), Value::Null);
                let words = self.words().map(|word| chunk(json!({"content": word}), Value::Null));
                [begin].into_iter().chain(words).chain([chunk(json!({}), json!("stop"))]).collect()
            }
            Route::Completions => {
                let chunk = |text: &str, reason: Value| {
                    json!({"id": "cmpl-1", "object": "text_completion",
                    "created": 0, "model": self.model,
                    "choices": [{"index": 0, "text": text, "finish_reason": reason, "logprobs": null}]})
                };
                self.words().map(|word| chunk(word, Value::Null)).chain([chunk("", json!("stop"))]).collect()
            }
            Route::Responses => self.response_events(),
            Route::Messages => self.message_events(),
        };
        if matches!(route, Route::Chat | Route::Generate) {
            return stream_response("application/x-ndjson", events.iter().map(|line| format!("{line}\n").into()));
        }
        let typed = |event: &Value| match event.get("type").and_then(Value::as_str) {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n").into(),
            None => format!("data: {event}\n\n").into(),
        };
        let done = matches!(route, Route::ChatCompletions | Route::Completions);
        let done = done.then(|| Bytes::from_static(b"data: [DONE]\n\n"));
        stream_response("text/event-stream", events.iter().map(typed).chain(done))
    }

    /// The native lines, of which the last one says that it is.
    fn lines(&self, line: impl Fn(&str) -> Value) -> Vec<Value> {
        let common = json!({"model": self.model, "created_at": "1970-01-01T00:00:00Z", "done": false});
        let end = json!({"done": true, "done_reason": "stop"});
        let words = self.words().map(|word| with(&line(word), common.clone()));
        let end = with(&end, with(&line(""), common.clone()));
        words.chain([end]).collect()
    }

    fn response_events(&self) -> Vec<Value> {
        let place = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0});
        let mut events = vec![
            json!({"type": "response.created", "response": self.response(false)}),
            json!({"type": "response.in_progress", "response": self.response(false)}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": self.item(false)}),
            with(&place, json!({"type": "response.content_part.added", "part": self.part("")})),
        ];
        let delta = |word| with(&place, json!({"type": "response.output_text.delta", "delta": word, "logprobs": []}));
        events.extend(self.words().map(delta));
        events.extend([
            with(&place, json!({"type": "response.output_text.done", "text": self.text, "logprobs": []})),
            with(&place, json!({"type": "response.content_part.done", "part": self.part(&self.text)})),
            json!({"type": "response.output_item.done", "output_index": 0, "item": self.item(true)}),
            json!({"type": "response.completed", "response": self.response(true)}),
        ]);
        let numbered = events.into_iter().enumerate();
        numbered.map(|(number, event)| with(&json!({ "sequence_number": number }), event)).collect()
    }

    fn message_events(&self) -> Vec<Value> {
        let message = with(&json!({"content": [], "stop_reason": null}), self.whole(Route::Messages));
        let delta = |word| {
            json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": word}})
        };
        let begin = [
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ];
        let end = [
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ];
        begin.into_iter().chain(self.words().map(delta)).chain(end).collect()
    }

    /// The text in pieces, blanks with the word before.
    fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split_inclusive(' ')
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
}

/// `event` with the fields of `more`.
fn with(more: &Value, mut event: Value) -> Value {
    if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object()) {
        event.extend(more.clone());
    }
    event
}

fn json_response(body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::Whole(body.to_string().into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn stream_response(kind: &'static str, chunks: impl IntoIterator<Item = Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Script(Script::new(chunks, false)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
