//! Secrets in a text: findings are in order, apart and on character boundaries, and nothing else is redacted.
//!
//! A `¦` is taken out first: it splits the secrets of the committed corpus, so that no scanner takes them for real.

#![no_main]

use gatehook_scan::{MARKER, find, redact, redact_in_place};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data).replace('¦', "");
    let (mut expected, mut count) = (text.clone(), 0);
    while let Some((next, found)) = replaced(&expected) {
        expected = next;
        count += found;
    }
    let once = redact(&text).into_owned();
    assert_eq!(once, expected);
    assert_eq!(redact(&once), once, "redacted twice");
    let mut in_place = text;
    assert_eq!(redact_in_place(&mut in_place), count);
    assert_eq!(in_place, once);
});

/// The text with its findings replaced, and how many there are.
fn replaced(text: &str) -> Option<(String, usize)> {
    let found = find(text);
    let (mut out, mut done) = (String::new(), 0);
    for (number, finding) in found.iter().enumerate() {
        let range = finding.range.clone();
        assert!(range.start < range.end, "{finding:?} is empty");
        assert!(number == 0 || done < range.start, "{finding:?} is not apart from the one before");
        let secret = text.get(range.clone());
        assert!(secret.is_some_and(|secret| !secret.contains(MARKER)), "{finding:?} cuts a character or is a marker");
        out.push_str(&text[done..range.start]);
        out.push_str(MARKER);
        done = range.end;
    }
    out.push_str(&text[done..]);
    (!found.is_empty()).then_some((out, found.len()))
}
