//! What servers say went wrong, in their own words and codes.

use std::time::Duration;

use serde_json::Value;

use super::ModelError;
use super::exchange::Failed;

/// The longest text that is told of an error, in characters.
const LONGEST: usize = 1000;

/// How servers say that a conversation does not fit, in lower case: a code, a type, or a part of the sentence.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",               // OpenAI and many that are compatible
    "maximum context length",                // OpenAI, vLLM, Mistral, OpenRouter, DeepSeek
    "model_context_window_exceeded",         // Anthropic
    "prompt is too long",                    // Anthropic
    "exceed context limit",                  // Anthropic: input and `max_tokens`
    "request_too_large",                     // Anthropic: 413
    "exceed_context_size_error",             // llama.cpp
    "exceeds the available context size",    // llama.cpp
    "context shift is disabled",             // llama.cpp, within its answer
    "exceeds the context length",            // Ollama
    "exceeds maximum context length",        // Ollama
    "exceeds the context window",            // OpenAI Responses, GitHub
    "greater than the context length",       // LM Studio
    "when the context overflows",            // LM Studio
    "longer than the maximum model length",  // vLLM
    "maximum model length",                  // vLLM
    "input is too long for requested model", // Bedrock
    "input token count",                     // Gemini: exceeds the maximum number of tokens allowed
    "exceeds the maximum number of tokens",  // Gemini, Vertex
    "maximum prompt length is",              // xAI
    "reduce the length of the messages",     // Groq, Azure
    "too large for model with",              // Mistral
    "max_new_tokens` must be <=",            // Text Generation Inference, Together
    "range of input length should be",       // DashScope
    "prompt exceeds max length",             // Z.ai
    "context window exceeds limit",          // MiniMax
];

/// What may be asked again, and which words in an event stand for which status.
const BUSY: &[u16] = &[429, 503, 529];

const WORDS: &[(&str, u16)] = &[
    ("overloaded_error", 529),
    ("rate_limit_error", 429),
    ("rate_limit_exceeded", 429),
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("api_error", 500),
    ("server_error", 500),
    ("timeout_error", 504),
];

/// An answer of such a status. `after`: when the server wants to be asked again.
pub(super) fn of_status(status: u16, body: &[u8], after: Option<Duration>) -> Failed {
    let text = String::from_utf8_lossy(body);
    let value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let message = message(&value).unwrap_or_else(|| plain(text.trim()));
    failed(status, message, &text, after)
}

/// The error that ends a stream.
pub(super) fn of_event(error: &Value) -> Failed {
    let message = message(error).unwrap_or_else(|| plain(&error.to_string()));
    let numbers = ["code", "status", "status_code"].iter().filter_map(|key| error.get(*key)?.as_u64());
    let said = numbers.filter_map(|code| u16::try_from(code).ok()).find(|code| (400..600).contains(code));
    let words = ["type", "code", "status"].iter().filter_map(|key| error.get(*key)?.as_str());
    let word = words.filter_map(|word| WORDS.iter().find(|(known, _)| *known == word)).map(|(_, status)| *status);
    let mut word = word;
    match said.or_else(|| word.next()) {
        Some(status) => failed(status, message, &error.to_string(), None),
        None if is_overflow(&error.to_string()) => ModelError::Overflow(message).into(),
        None => ModelError::Broken(format!("ended in an error: {message}")).into(),
    }
}

fn failed(status: u16, message: String, text: &str, after: Option<Duration>) -> Failed {
    let is_overflow = is_overflow(text) || is_overflow(&message);
    let error = match is_overflow && (400..=500).contains(&status) {
        true => ModelError::Overflow(message),
        false => ModelError::Status { status, message },
    };
    let busy = BUSY.contains(&status) && matches!(error, ModelError::Status { .. });
    Failed { error, busy: busy.then_some(after) }
}

fn is_overflow(text: &str) -> bool {
    let text = text.to_lowercase();
    OVERFLOW.iter().any(|words| text.contains(words))
}

/// The sentence in an error, as one server or another writes it.
fn message(value: &Value) -> Option<String> {
    const PLACES: &[&str] = &["/error/message", "/error/error/message", "/error", "/message", "/detail", "/msg", ""];
    let texts = PLACES.iter().filter_map(|place| value.pointer(place)?.as_str());
    texts.map(plain).find(|text| !text.is_empty())
}

/// A text of a server for a person: bounded, without control characters.
pub(super) fn plain(text: &str) -> String {
    let visible = |char: char| if char.is_control() { ' ' } else { char };
    let mut plain: String = text.trim().chars().take(LONGEST).map(visible).collect();
    if text.trim().chars().nth(LONGEST).is_some() {
        plain.push('…');
    }
    plain
}
