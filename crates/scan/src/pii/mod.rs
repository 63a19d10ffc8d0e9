//! Recognises personal data: addresses, telephone numbers, numbers of cards, accounts and persons.
//!
//! [`find()`] names every value in a text, [`redact()`] puts something in the place of each, and [`Growing`] follows a
//! text that is still being written. What is recognised is one table, [`KINDS`].
//!
//! A finder is asked at the few places where a value of its kind shows (a run of digits, an `@`, a colon), looks back a
//! little and reads forward no further than a value may be long: the time is linear in the text. Whether it read behind
//! the end of what has come tells whether more text could change what it found; so a whole text and one that comes in
//! pieces are searched by the same code.

mod card;
mod email;
mod growing;
mod iban;
mod ip;
mod phone;
mod search;
mod ssn;
mod text;
mod words;

use std::borrow::Cow;
use std::ops::Range;

pub use growing::Growing;

use search::{Finder, Place, search};
use text::Text;

/// A kind of personal data.
#[derive(Debug)]
pub struct Kind {
    name: &'static str,
    word: &'static str,
    /// Where values of it show, and what finds them there.
    finders: &'static [(Place, Finder)],
    /// Where a value may already have begun at the end of a text in which nothing shows it yet.
    begun: fn(&Text<'_>, usize) -> usize,
}

impl Kind {
    /// What it is called: `email`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What stands for a value of it in a text: `EMAIL`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.word
    }
}

/// All kinds. Of kinds that fit the same place, the first names it.
pub const KINDS: [Kind; 6] = [
    Kind { name: "email", word: "EMAIL", finders: &[(Place::Byte(b'@'), email::find)], begun: email::local_start },
    Kind { name: "card", word: "CARD", finders: &[(Place::Digits, card::find)], begun: |_, end| end },
    Kind { name: "iban", word: "IBAN", finders: &[(Place::Digits, iban::find)], begun: iban::begun },
    Kind { name: "ssn", word: "SSN", finders: &[(Place::Digits, ssn::find)], begun: |_, end| end },
    Kind {
        name: "phone",
        word: "PHONE",
        finders: &[(Place::Digits, phone::find), (Place::Digits, phone::find_bracket)],
        begun: phone::begun,
    },
    Kind {
        name: "ip",
        word: "IP",
        finders: &[(Place::Digits, ip::find_v4), (Place::Byte(b':'), ip::find_v6)],
        begun: ip::v6_start,
    },
];

/// A choice of [`KINDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self((1 << KINDS.len()) - 1);

    /// These, and the one of this name; `None` where there is no such kind.
    ///
    /// ```
    /// use gatehook_scan::pii::Kinds;
    ///
    /// assert!(Kinds::NONE.with("email").is_some());
    /// assert!(Kinds::NONE.with("shoe size").is_none());
    /// ```
    #[must_use]
    pub fn with(self, name: &str) -> Option<Self> {
        let index = KINDS.iter().position(|kind| kind.name == name)?;
        Some(Self(self.0 | 1 << index))
    }

    const fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }
}

/// A value in a text.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What it is.
    pub kind: &'static Kind,
    /// Where it stands, in bytes, on character boundaries.
    pub range: Range<usize>,
}

impl PartialEq for Finding {
    fn eq(&self, other: &Self) -> bool {
        (self.kind.name, &self.range) == (other.kind.name, &other.range)
    }
}

/// The values of `kinds` in `text`, in order, apart from each other: what overlaps is one.
///
/// A text without any costs no allocation.
///
/// ```
/// use gatehook_scan::pii::{Kinds, find};
///
/// let found = find("write to jane@example.com", Kinds::ALL);
/// assert_eq!((found[0].kind.name(), found[0].range.clone()), ("email", 9..25));
/// ```
#[must_use]
pub fn find(text: &str, kinds: Kinds) -> Vec<Finding> {
    search(&Text::new(text, true), 0, kinds).findings
}

/// How often a redacted text is looked through again, at most.
const PASSES: usize = 8;

/// `text` with each value of `kinds` replaced by what `replace` says; borrowed where there is none. What it says must be
/// no value itself, and neither begin nor end with a letter or a digit.
///
/// Where one value stands directly beside another, the second shows only when the first is gone: hence more than one
/// pass. Almost always the second finds nothing.
///
/// ```
/// use gatehook_scan::pii::{Kinds, redact};
///
/// let text = redact("ssn 123-45-6789", Kinds::ALL, |kind, _value| format!("<{}>", kind.word()));
/// assert_eq!(text, "ssn <SSN>");
/// ```
pub fn redact<'t>(text: &'t str, kinds: Kinds, mut replace: impl FnMut(&'static Kind, &str) -> String) -> Cow<'t, str> {
    let mut redacted = Cow::Borrowed(text);
    for _ in 0..PASSES {
        let findings = find(&redacted, kinds);
        if findings.is_empty() {
            break;
        }
        redacted = Cow::Owned(replaced(&redacted, findings, &mut replace));
    }
    redacted
}

fn replaced(text: &str, findings: Vec<Finding>, replace: &mut impl FnMut(&'static Kind, &str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Finding { kind, range } in findings {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.push_str(&replace(kind, text.get(range.clone()).unwrap_or_default()));
        done = range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
