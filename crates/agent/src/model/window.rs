//! How many tokens a model takes: as configured, as its server says, or as its family is known for.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::server::{Http, Server};
use super::{Format, Model};

/// Families by the beginning of their names, the longest first: the window, and the longest answer. Of hosted models
/// alone; what a local server takes is its own choice.
const FAMILIES: &[(&str, u64, u32)] = &[
    ("claude-opus-4-0", 200_000, 32_000),
    ("claude-opus-4-1", 200_000, 32_000),
    ("claude-opus-4-2", 200_000, 32_000),
    ("claude-3-7", 200_000, 64_000),
    ("claude-3-5", 200_000, 8_192),
    ("claude-3", 200_000, 4_096),
    ("claude-", 200_000, 64_000),
    ("gpt-5-chat", 128_000, 16_384),
    ("gpt-5", 400_000, 128_000),
    ("gpt-4.1", 1_047_576, 32_768),
    ("gpt-4o", 128_000, 16_384),
    ("gpt-4-turbo", 128_000, 4_096),
    ("gpt-4", 8_192, 8_192),
    ("gpt-3.5", 16_385, 4_096),
    ("chatgpt-4o", 128_000, 16_384),
    ("o1", 200_000, 100_000),
    ("o3", 200_000, 100_000),
    ("o4", 200_000, 100_000),
    ("gemini-", 1_048_576, 65_536),
    ("deepseek-", 128_000, 8_192),
    ("grok-4", 256_000, 64_000),
    ("mistral-large", 128_000, 32_000),
    ("kimi-k2", 262_144, 32_000),
];

/// An answer of a family that is not known may have so many tokens, where the server wants to be told.
const MOST: u32 = 8_192;

/// How often a server is asked.
const TRIES: u8 = 3;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of such an answer.
const LONGEST: usize = 4 << 20;

/// The window of one model.
#[derive(Debug, Default)]
pub(super) struct Window {
    said: u64,
    found: AtomicU64,
    tries: AtomicU8,
}

/// The name of a model without whoever passes it on, as in `anthropic/claude-…`.
fn family(name: &str) -> Option<&'static (&'static str, u64, u32)> {
    let name = name.rsplit('/').next().unwrap_or(name);
    FAMILIES.iter().find(|(family, ..)| name.starts_with(family))
}

/// The longest answer of a model.
pub(super) fn most_tokens(name: &str) -> u32 {
    family(name).map_or(MOST, |(.., most)| *most)
}

impl Window {
    /// One of so many tokens.
    pub(super) fn said(tokens: u64) -> Self {
        Self { said: tokens, ..Self::default() }
    }

    /// What the configuration says.
    pub(super) fn is_said(&self) -> Option<u64> {
        (self.said > 0).then_some(self.said)
    }

    pub(super) fn known(&self, model: &Model) -> u64 {
        let found = Some(self.found.load(Ordering::Relaxed)).filter(|found| *found > 0);
        let family = || family(model.name()).filter(|_| model.format != Format::Ollama).map(|(_, window, _)| *window);
        self.is_said().or(found).or_else(family).unwrap_or(0)
    }

    /// Asks the server, where nothing else says it. Cancel safe.
    pub(super) async fn learn(&self, model: &Model) {
        let Server::Http(http) = &model.server else { return };
        if self.known(model) > 0 || self.tries.fetch_add(1, Ordering::Relaxed) >= TRIES {
            return;
        }
        let found = match model.format {
            Format::Ollama => of_ollama(http, model.name()).await,
            Format::OpenAi | Format::Anthropic => of_compatible(http, model.name()).await,
        };
        self.found.store(found.unwrap_or(0), Ordering::Relaxed);
    }
}

/// `num_ctx` of the model's file; else what the loaded model was given; else what it was made for.
async fn of_ollama(http: &Http, name: &str) -> Option<u64> {
    let show = asked(http, Method::POST, "/api/show", &json!({ "model": name })).await?;
    let parameters = show.get("parameters").and_then(Value::as_str).unwrap_or_default();
    let mut lines = parameters.lines().filter_map(|line| line.trim().strip_prefix("num_ctx"));
    if let Some(window) = lines.find_map(|number| number.trim().parse().ok()) {
        return Some(window);
    }
    let loaded = asked(http, Method::GET, "/api/ps", &Value::Null).await;
    let models = loaded.as_ref().and_then(|loaded| loaded.get("models")).and_then(Value::as_array);
    let is_it = |model: &&Value| {
        ["name", "model"].iter().any(|key| model.get(*key).and_then(Value::as_str).is_some_and(|it| is_same(it, name)))
    };
    let mut own = models.into_iter().flatten().filter(is_it);
    if let Some(window) = own.find_map(|model| model.get("context_length")?.as_u64()).filter(|window| *window > 0) {
        return Some(window);
    }
    let info = show.get("model_info").and_then(Value::as_object)?;
    info.iter().find(|(key, _)| key.ends_with(".context_length")).and_then(|(_, value)| value.as_u64())
}

/// Ollama's names without a tag mean `latest`.
fn is_same(one: &str, other: &str) -> bool {
    let full = |name: &str| if name.contains(':') { name.to_owned() } else { format!("{name}:latest") };
    full(one) == full(other)
}

/// llama.cpp says it of its slots; vLLM and others of their models.
async fn of_compatible(http: &Http, name: &str) -> Option<u64> {
    if let Some(props) = asked(http, Method::GET, "/props", &Value::Null).await
        && let Some(window) = props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64)
    {
        return Some(window).filter(|window| *window > 0);
    }
    let list = asked(http, Method::GET, "/v1/models", &Value::Null).await?;
    let models = list.get("data").and_then(Value::as_array)?;
    let model = models.iter().find(|model| model.get("id").and_then(Value::as_str) == Some(name))?;
    ["max_model_len", "context_length", "max_context_length"].iter().find_map(|key| model.get(*key)?.as_u64())
}

/// What the server says beside its models' answers; none where it says nothing in time.
async fn asked(http: &Http, method: Method, path: &str, body: &Value) -> Option<Value> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let asked = async {
        let response = http.beside(method, path, body).await?;
        let body = response.into_body().collect_within(LONGEST).await.ok()?;
        serde_json::from_slice(&body).ok()
    };
    timeout(PATIENCE, asked).await.ok().flatten()
}
