//! Log probabilities: which text their tokens spell.

use crate::json::{At, Document, Kind};

/// Whether the tokens of `logprobs` spell exactly `text`: entries of chat (`content`, `refusal`: each `{"token",
/// "bytes"}`), of completions (`tokens`: strings), or a bare list of entries as Ollama writes it.
pub(super) fn spell(document: &Document, logprobs: At, text: &str) -> bool {
    let lists: Vec<At> = match document.kind(logprobs) {
        Kind::Array => vec![logprobs],
        _ => ["content", "refusal", "tokens"].iter().filter_map(|key| document.some(logprobs, key)).collect(),
    };
    let mut rest = text.as_bytes();
    lists.into_iter().flat_map(|list| document.elements(list)).all(|entry| match spelled(document, entry) {
        Some(token) => rest.strip_prefix(&*token).map(|after| rest = after).is_some(),
        None => false,
    }) && rest.is_empty()
}

/// The bytes of one token. Where it is told twice (as text and as bytes), both must say the same; a token that is part
/// of a character has no text of its own, and there the bytes count.
pub(crate) fn spelled(document: &Document, entry: At) -> Option<Vec<u8>> {
    let token = document.text(entry).or_else(|| document.string(entry, "token"))?;
    let Some(list) = document.some(entry, "bytes") else { return Some(token.into_owned().into_bytes()) };
    let bytes: Vec<u8> = document.elements(list).map(|byte| document.raw(byte).parse().ok()).collect::<Option<_>>()?;
    match std::str::from_utf8(&bytes) {
        Ok(text) if text != token => None,
        _ => Some(bytes),
    }
}
