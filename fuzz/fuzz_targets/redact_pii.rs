//! Personal data over the borders of pieces: what is settled of a text that comes in pieces is what the whole says, and
//! placeholders in pieces become the values again.
//!
//! The first byte says how the text is cut: one that four divides, after each character; another, by chance.

#![no_main]

use std::sync::Arc;

use gatehook_scan::pii::{Growing, Kinds, find, redact};
use gatehook_scan::{Restore, Restoring};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&seed, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data);
    let whole = find(&text, Kinds::ALL);
    let mut growing = Growing::new(Kinds::ALL);
    let (mut came, mut upto) = (0, 0);
    for piece in pieces(&text, seed) {
        came += piece.len();
        let settled = growing.push(piece, came == text.len());
        assert!(upto <= settled.upto && settled.upto <= came && !settled.too_long);
        let across = |range: &std::ops::Range<usize>| range.start < settled.upto && settled.upto < range.end;
        assert!(!whole.iter().any(|found| across(&found.range)), "settled to {} in {whole:?}", settled.upto);
        let new = whole.iter().any(|found| (upto..settled.upto).contains(&found.range.start));
        assert_eq!(settled.clean, !new, "from {upto} to {} in {whole:?}", settled.upto);
        upto = settled.upto;
    }
    assert_eq!(upto, text.len());
    come_back(&text, seed);
});

/// Each value becomes a placeholder that does not stand in the text, and comes back.
fn come_back(text: &str, seed: u8) {
    let mut pairs: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    let redacted = redact(text, Kinds::ALL, |kind, value| {
        let placeholder = format!("<{}\u{1}_{}>", kind.word(), pairs.len());
        pairs.push((placeholder.as_str().into(), value.into()));
        placeholder
    });
    if text.contains('\u{1}') {
        return;
    }
    let restore = Arc::new(Restore::new(pairs));
    assert_eq!(restore.restore(&redacted), text);
    let mut restoring = Restoring::new(restore.clone());
    let (mut came, mut upto, mut out) = (0, 0, String::new());
    for piece in pieces(&redacted, seed) {
        came += piece.len();
        let settled = restoring.push(piece, came == redacted.len());
        out.push_str(&restore.restore(&redacted[upto..settled.upto]));
        upto = settled.upto;
    }
    assert_eq!(out, text);
}

/// The text in pieces of whole characters; one piece at least.
fn pieces(text: &str, seed: u8) -> Vec<&str> {
    let (mut pieces, mut rest, mut state) = (Vec::new(), text, u32::from(seed));
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let len = if seed % 4 == 0 { 1 } else { (state >> 16) as usize % 24 + 1 };
        let (piece, behind) = rest.split_at(rest.ceil_char_boundary(len.min(rest.len())));
        pieces.push(piece);
        rest = behind;
    }
    if pieces.is_empty() { vec![""] } else { pieces }
}
