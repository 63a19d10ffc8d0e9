//! A body in canonical form, hashed: what an approval is bound to.

use sha2::{Digest, Sha256};

use crate::json::{At, Document, Kind, quote};

/// SHA-256 over route, key and body, lower-case hex. Member order, whitespace and escapes do not count, number
/// spelling does. `hidden` (an object and a value in it) does not count, nor does that object if it holds nothing else.
pub(crate) fn fingerprint(path: &str, key: &str, document: &Document, hidden: Option<(At, At)>) -> String {
    let mut hasher = Sha256::new();
    for text in [path, key] {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    let hidden = hidden.map(|(object, value)| match document.members(object).count() {
        1 => object,
        _ => value,
    });
    canonical(document, Document::ROOT, hidden, &mut hasher);
    hex(&hasher.finalize())
}

/// The reader bounds the depth.
fn canonical(document: &Document, at: At, hidden: Option<At>, hasher: &mut Sha256) {
    match document.kind(at) {
        Kind::Object => {
            let mut members: Vec<_> = document
                .members(at)
                .filter(|(_, value)| Some(*value) != hidden)
                .map(|(key, value)| (document.text(key).unwrap_or_default(), value))
                .collect();
            members.sort_unstable();
            hasher.update(b"{");
            for (key, value) in members {
                hasher.update(quote(&key));
                hasher.update(b":");
                canonical(document, value, hidden, hasher);
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Kind::Array => {
            hasher.update(b"[");
            for element in document.elements(at) {
                canonical(document, element, hidden, hasher);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Kind::String => hasher.update(quote(&document.text(at).unwrap_or_default())),
        _ => hasher.update(document.raw(at)),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}
