//! Secrets over the borders of pieces: a text that comes in pieces leaves as if it had been redacted as a whole.
//!
//! The first byte says how the text is cut: one that four divides, after each character; another, by chance. A `¦` is taken out first: it splits the secrets of the committed corpus, so
//! that no scanner takes them for real.

#![no_main]

use gatehook_scan::{Carry, context, redact};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&seed, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data).replace('¦', "");
    let (mut carry, mut left) = (Carry::new(), String::new());
    let (mut came, mut upto) = (0, 0);
    let mut state = u32::from(seed);
    while came < text.len() {
        let len = if seed % 4 == 0 { 1 } else { chance(&mut state) };
        let end = text.ceil_char_boundary((came + len).min(text.len()));
        let settled = carry.push(&text[came..end], end == text.len());
        assert!(upto <= settled.upto && settled.upto <= end && !settled.too_long, "{settled:?}");
        let (segment, context) = (&text[upto..settled.upto], context(&left));
        let shown = [context, segment].concat();
        let redacted = redact(&shown);
        let redacted = redacted.strip_prefix(context).expect("what has left stays");
        assert!(!settled.clean || redacted == segment, "{segment:?} is called clean");
        left.push_str(redacted);
        (came, upto) = (end, settled.upto);
    }
    assert_eq!(upto, text.len(), "all is settled at the end");
    assert_eq!(left, redact(&text));
});

/// A number from 1 to 64.
fn chance(state: &mut u32) -> usize {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 26) as usize + 1
}
