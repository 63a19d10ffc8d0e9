//! The path table: of each path of an inference server, whether hooks see it, it passes, or it is shut.
//!
//! Inference servers have more doors than the six routes, and spell the same door in several ways. So a path is brought
//! into one form before it is looked up, that form is what the upstream gets, and a spelling that two servers could read
//! differently is refused. To add a path, add a row.

use std::borrow::Cow;

use gatehook_inference::{Path, Route, TextRoute, Wire};
use http::Method;

use crate::config::UpstreamKind;

/// What becomes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Its body is text for a model: hooks see it.
    Hooked(Path),
    /// Lists, health, versions: passed as it comes.
    Passed,
    /// Changes what models there are, or how the server runs: passed unless management is closed.
    Management,
    /// Takes text or runs models where hooks cannot follow: shut once a hook may block.
    Shut,
}

/// Which methods a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Methods {
    Get,
    Post,
    Delete,
    Any,
}

impl Methods {
    fn has(self, method: &Method) -> bool {
        match self {
            Methods::Get => matches!(*method, Method::GET | Method::HEAD),
            Methods::Post => *method == Method::POST,
            Methods::Delete => *method == Method::DELETE,
            Methods::Any => true,
        }
    }

    fn names(self) -> &'static str {
        match self {
            Methods::Get => "GET, HEAD",
            Methods::Post => "POST",
            Methods::Delete => "DELETE",
            Methods::Any => "GET, HEAD, POST, PUT, PATCH, DELETE",
        }
    }
}

/// Which kinds of server a row is about.
const ALL: &[UpstreamKind] = &[UpstreamKind::Ollama, UpstreamKind::OpenAi, UpstreamKind::Anthropic];
const OLLAMA: &[UpstreamKind] = &[UpstreamKind::Ollama];
const OPENAI: &[UpstreamKind] = &[UpstreamKind::OpenAi];

struct Row {
    /// `*` stands for one segment, `**` at the end for one or more.
    path: &'static str,
    methods: Methods,
    kinds: &'static [UpstreamKind],
    class: Class,
}

const fn row(path: &'static str, methods: Methods, kinds: &'static [UpstreamKind], class: Class) -> Row {
    Row { path, methods, kinds, class }
}

const fn alias(path: &'static str, route: Route) -> Row {
    row(path, Post, ALL, Class::Hooked(Path::Route(route)))
}

use Class::{Management, Passed, Shut};
use Methods::{Any, Delete, Get, Post};

/// Every path beside the six routes and those that only take text; the first row that fits counts.
///
/// Ollama: <https://github.com/ollama/ollama/blob/main/server/routes.go>; llama.cpp:
/// <https://github.com/ggml-org/llama.cpp/tree/master/tools/server>; vLLM:
/// <https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html>.
const TABLE: &[Row] = &[
    // Ollama.
    row("/", Get, ALL, Passed),
    row("/api/version", Get, OLLAMA, Passed),
    row("/api/tags", Get, ALL, Passed),
    row("/api/ps", Get, OLLAMA, Passed),
    row("/api/status", Get, OLLAMA, Passed),
    row("/api/experimental/model-recommendations", Get, OLLAMA, Passed),
    row("/api/show", Post, ALL, Passed),
    row("/api/me", Post, OLLAMA, Passed),
    row("/api/signout", Post, OLLAMA, Management),
    row("/api/user/keys/*", Delete, OLLAMA, Management),
    row("/api/create", Post, OLLAMA, Management),
    row("/api/copy", Post, OLLAMA, Management),
    row("/api/pull", Post, OLLAMA, Management),
    row("/api/push", Post, OLLAMA, Management),
    row("/api/delete", Delete, OLLAMA, Management),
    row("/api/blobs/*", Any, OLLAMA, Management),
    row("/api/experimental/web_search", Post, OLLAMA, Shut),
    row("/api/experimental/web_fetch", Post, OLLAMA, Shut),
    row("/v1/audio/transcriptions", Post, ALL, Shut),
    // Lists and health of the compatible ones.
    row("/v1/models", Get, ALL, Passed),
    row("/v1/models/**", Get, ALL, Passed),
    row("/models", Get, OPENAI, Passed),
    row("/health", Get, OPENAI, Passed),
    row("/v1/health", Get, OPENAI, Passed),
    row("/ping", Get, OPENAI, Passed),
    row("/version", Get, OPENAI, Passed),
    row("/props", Get, OPENAI, Passed),
    row("/props", Post, OPENAI, Management),
    row("/load", Get, OPENAI, Passed),
    row("/lora-adapters", Get, OPENAI, Passed),
    row("/lora-adapters", Post, OPENAI, Management),
    row("/v1/load_lora_adapter", Post, OPENAI, Management),
    row("/v1/unload_lora_adapter", Post, OPENAI, Management),
    row("/models/load", Post, OPENAI, Management),
    row("/models/unload", Post, OPENAI, Management),
    // The same routes by other names, whatever the server is said to be.
    alias("/chat/completions", Route::ChatCompletions),
    alias("/v1/chat/completions/stream", Route::ChatCompletions),
    alias("/responses", Route::Responses),
    row("/embeddings", Post, ALL, Class::Hooked(Path::Text(TextRoute::OpenAiEmbeddings))),
    // Doors that hooks cannot follow: raw prompts, stored state, batches, other models.
    row("/completion", Any, ALL, Shut),
    row("/completions", Any, ALL, Shut),
    row("/embedding", Any, ALL, Shut),
    row("/infill", Any, ALL, Shut),
    row("/tokenize", Any, ALL, Shut),
    row("/detokenize", Any, ALL, Shut),
    row("/apply-template", Any, ALL, Shut),
    row("/slots", Any, ALL, Shut),
    row("/slots/**", Any, ALL, Shut),
    row("/rerank", Any, ALL, Shut),
    row("/reranking", Any, ALL, Shut),
    row("/v1/rerank", Any, ALL, Shut),
    row("/v1/reranking", Any, ALL, Shut),
    row("/v2/rerank", Any, ALL, Shut),
    row("/score", Any, ALL, Shut),
    row("/v1/score", Any, ALL, Shut),
    row("/classify", Any, ALL, Shut),
    row("/pooling", Any, ALL, Shut),
    row("/generate", Any, ALL, Shut),
    row("/invocations", Any, ALL, Shut),
    row("/inference/**", Any, ALL, Shut),
    row("/v1/chat/completions/**", Any, ALL, Shut),
    row("/v1/responses/**", Any, ALL, Shut),
    row("/v1/messages/batches", Any, ALL, Shut),
    row("/v1/messages/batches/**", Any, ALL, Shut),
    row("/v1/batches", Any, ALL, Shut),
    row("/v1/batches/**", Any, ALL, Shut),
    row("/v1/complete", Any, ALL, Shut),
    row("/v1/edits", Any, ALL, Shut),
    row("/v1/engines/**", Any, ALL, Shut),
    row("/v1/conversations", Any, ALL, Shut),
    row("/v1/conversations/**", Any, ALL, Shut),
    row("/v1/assistants", Any, ALL, Shut),
    row("/v1/assistants/**", Any, ALL, Shut),
    row("/v1/threads", Any, ALL, Shut),
    row("/v1/threads/**", Any, ALL, Shut),
    row("/v1/files", Any, ALL, Shut),
    row("/v1/files/**", Any, ALL, Shut),
    row("/v1/realtime", Any, ALL, Shut),
    row("/v1/realtime/**", Any, ALL, Shut),
    row("/v1/audio/**", Any, ALL, Shut),
    row("/v1/images/**", Any, ALL, Shut),
    row("/v1/videos", Any, ALL, Shut),
    row("/v1/videos/**", Any, ALL, Shut),
    row("/v1/moderations", Any, ALL, Shut),
    row("/v1/fine_tuning/**", Any, ALL, Shut),
    row("/v1/vector_stores", Any, ALL, Shut),
    row("/v1/vector_stores/**", Any, ALL, Shut),
];

/// What the table says of a request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its row.
    Row(Class),
    /// There are rows of this path, none with this method.
    OtherMethod,
    /// No row.
    Unknown,
}

/// What the table says of `path`, which is in its one form, at a server of this kind.
pub(crate) fn look_up(kind: UpstreamKind, method: &Method, path: &str) -> Found {
    if let Some(path) = Path::from_path(path) {
        return if *method == Method::POST { Found::Row(Class::Hooked(path)) } else { Found::OtherMethod };
    }
    let mut found = Found::Unknown;
    for row in TABLE.iter().filter(|row| row.kinds.contains(&kind) && fits(row.path, path)) {
        if row.methods.has(method) {
            return Found::Row(row.class);
        }
        found = Found::OtherMethod;
    }
    found
}

/// The methods that a path has, as `Allow` lists them.
pub(crate) fn methods(kind: UpstreamKind, path: &str) -> String {
    if Path::from_path(path).is_some() {
        return Methods::Post.names().to_owned();
    }
    let rows = TABLE.iter().filter(|row| row.kinds.contains(&kind) && fits(row.path, path));
    rows.map(|row| row.methods.names()).collect::<Vec<_>>().join(", ")
}

/// Whether the path is one of the table in another case. Some servers read paths so, and some of their neighbours.
pub(crate) fn is_other_case(kind: UpstreamKind, method: &Method, path: &str) -> bool {
    path.bytes().any(|byte| byte.is_ascii_uppercase())
        && look_up(kind, method, path) == Found::Unknown
        && look_up(kind, method, &path.to_ascii_lowercase()) != Found::Unknown
}

fn fits(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some("**"), Some(segment)) => return !segment.is_empty(),
            (Some("*"), Some(segment)) if !segment.is_empty() => {}
            (Some(expected), Some(segment)) if expected == segment => {}
            _ => return false,
        }
    }
}

/// What an error looks like at a path that is not hooked.
pub(crate) fn wire_of(path: &str) -> Wire {
    match path {
        path if path.starts_with("/v1/messages") || path.starts_with("/v1/complete") => Wire::Anthropic,
        path if path.starts_with("/api/") || path == "/" => Wire::Ollama,
        _ => Wire::OpenAi,
    }
}

/// Why a path has no one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("the request target is not a path")]
    NotAPath,
    #[error("the path has a segment `.` or `..` that leads upwards")]
    Upwards,
    #[error("the path has parameters after `;`")]
    Parameters,
    #[error("the path holds an encoded slash, backslash, percent sign or character beyond ASCII")]
    Encoded,
    #[error("the path holds a backslash, a control character or a character beyond ASCII")]
    Characters,
}

/// The one form of a path: no empty segments, no `.`, no slash at the end, nothing percent-encoded.
pub(crate) fn canonical(path: &str) -> Result<Cow<'_, str>, PathError> {
    if Path::from_path(path).is_some() {
        return Ok(Cow::Borrowed(path));
    }
    if !path.starts_with('/') {
        return Err(PathError::NotAPath);
    }
    let decoded = decode(path)?;
    let plain = decoded.len() == 1 || !(decoded.contains("//") || decoded.contains("/.") || decoded.ends_with('/'));
    if plain {
        return Ok(decoded);
    }
    let mut clean = String::with_capacity(decoded.len());
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => return Err(PathError::Upwards),
            segment => {
                clean.push('/');
                clean.push_str(segment);
            }
        }
    }
    Ok(Cow::Owned(if clean.is_empty() { "/".to_owned() } else { clean }))
}

/// The path without percent encoding. What would be read differently once decoded is refused.
fn decode(path: &str) -> Result<Cow<'_, str>, PathError> {
    for byte in path.bytes() {
        match byte {
            b';' => return Err(PathError::Parameters),
            b'\\' | 0..=b' ' | 0x7F.. => return Err(PathError::Characters),
            _ => {}
        }
    }
    if !path.contains('%') {
        return Ok(Cow::Borrowed(path));
    }
    let bytes: Cow<'_, [u8]> = percent_encoding::percent_decode_str(path).into();
    let raw_slashes = path.bytes().filter(|byte| *byte == b'/').count();
    let slashes = bytes.iter().filter(|byte| **byte == b'/').count();
    let odd = |byte: &u8| matches!(byte, b'%' | b'\\' | b';' | b'?' | b'#' | 0..=b' ' | 0x7F..);
    if slashes != raw_slashes || bytes.iter().any(odd) {
        return Err(PathError::Encoded);
    }
    String::from_utf8(bytes.into_owned()).map(Cow::Owned).map_err(|_| PathError::Encoded)
}

#[cfg(test)]
mod tests;
