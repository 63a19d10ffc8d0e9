//! Redacting secrets.

use std::borrow::Cow;

use crate::find::{Finding, find};

/// What stands in a redacted text where a secret was. No rule matches it.
pub const MARKER: &str = "[REDACTED]";

/// How often a redacted text is looked through again, at most.
const PASSES: usize = 8;

/// `text` with each secret replaced by [`MARKER`]; borrowed, without any allocation, if there is none.
///
/// Redacting a redacted text changes nothing.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    redacted(text).map_or(Cow::Borrowed(text), |(text, _)| Cow::Owned(text))
}

/// Replaces each secret in `text` by [`MARKER`] and tells how many there were; 0 leaves `text` untouched.
pub fn redact_in_place(text: &mut String) -> usize {
    let Some((new, count)) = redacted(text) else { return 0 };
    *text = new;
    count
}

/// The redacted text and the number of secrets, if there are any.
///
/// A marker can cut short what stood beside a secret, so that a rule fits which did not before: hence more than one
/// pass. Almost always the second finds nothing.
fn redacted(text: &str) -> Option<(String, usize)> {
    let findings = find(text);
    if findings.is_empty() {
        return None;
    }
    let (mut text, mut count) = (replace(text, &findings), findings.len());
    for _ in 1..PASSES {
        let findings = find(&text);
        if findings.is_empty() {
            break;
        }
        text = replace(&text, &findings);
        count += findings.len();
    }
    Some((text, count))
}

fn replace(text: &str, findings: &[Finding]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Finding { range, .. } in findings {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.push_str(MARKER);
        done = range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}
