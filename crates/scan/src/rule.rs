//! What one rule of the table says.

/// One secret format.
///
/// A rule is found by a literal and confirmed by a pattern. The pattern describes what follows the literal (or, for a
/// named value, the value) and is tried at that one place only, never searched for.
#[derive(Debug)]
pub struct Rule {
    id: &'static str,
    name: &'static str,
    pub(crate) place: Place,
    pub(crate) literals: &'static [&'static str],
    pub(crate) lead: Option<Lead>,
    pub(crate) pattern: &'static str,
    pub(crate) check: Check,
}

impl Rule {
    /// The stable identifier, in kebab case: `github-pat`.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Vendor and kind, for people: `GitHub personal access token`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The literals that it is found by; `^` and `$` stand for the ends of a name.
    pub fn literals(&self) -> impl Iterator<Item = &'static str> {
        self.literals.iter().copied()
    }

    /// Also asks that `min..=max` bytes of `class` stand directly before the literal; they belong to the secret.
    pub(crate) const fn after(mut self, class: fn(u8) -> bool, min: usize, max: usize) -> Self {
        self.lead = Some(Lead { class, min, max });
        self
    }

    /// Also asks that the secret passes `check`.
    pub(crate) const fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }
}

/// Where a rule's literals are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Inside a long run of token characters, at a word's beginning. The match must end where a word ends.
    Run,
    /// Anywhere in the text.
    Text,
    /// In the name of an assignment whose value is a long run, compared without case and punctuation; `^` and `$`
    /// stand for the name's ends. The pattern describes the value.
    Name,
}

/// What must stand before a rule's literal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead {
    pub(crate) class: fn(u8) -> bool,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// What a secret must pass beyond its pattern, where the pattern alone also fits ordinary words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Check {
    /// Nothing more.
    None,
    /// A letter, a digit, and at least so many bits of Shannon entropy per byte.
    Mixed(f64),
    /// A letter, and a digit or one of the signs that people put into passwords.
    Password,
}

impl Check {
    /// Whether `secret` passes.
    pub(crate) fn passes(self, secret: &[u8]) -> bool {
        let has = |class: fn(&u8) -> bool| secret.iter().any(class);
        match self {
            Self::None => true,
            Self::Mixed(bits) => has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit) && entropy(secret) >= bits,
            Self::Password => has(u8::is_ascii_alphabetic) && has(|b| b.is_ascii_digit() || b"!@#$%^&*+?".contains(b)),
        }
    }
}

/// Shannon entropy in bits per byte; 0 for nothing.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = bytes.len() as f64;
    let shares = counts.iter().filter(|&&count| count > 0).map(|&count| f64::from(count) / total);
    shares.map(|share| -share * share.log2()).sum()
}

/// A token that its prefix gives away: one of `prefixes`, then `rest`.
pub(crate) const fn token(
    id: &'static str,
    name: &'static str,
    prefixes: &'static [&'static str],
    rest: &'static str,
) -> Rule {
    Rule { id, name, place: Place::Run, literals: prefixes, lead: None, pattern: rest, check: Check::None }
}

/// A value that only the name it is assigned to gives away.
///
/// Asks for a letter, a digit and some entropy, so that `datadog_key = some_function_of_another_name` stays.
pub(crate) const fn named(
    id: &'static str,
    name: &'static str,
    keywords: &'static [&'static str],
    value: &'static str,
) -> Rule {
    Rule { id, name, place: Place::Name, literals: keywords, lead: None, pattern: value, check: Check::Mixed(2.8) }
}

/// A shape around a literal that may stand anywhere: one of `anchors`, then `rest`. Group 1, if there is one, is the
/// secret. No two anchors of the table may overlap in a text.
pub(crate) const fn shape(
    id: &'static str,
    name: &'static str,
    anchors: &'static [&'static str],
    rest: &'static str,
) -> Rule {
    Rule { id, name, place: Place::Text, literals: anchors, lead: None, pattern: rest, check: Check::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_counts_bits_per_byte() {
        assert_eq!(entropy(b""), 0.0);
        assert_eq!(entropy(b"aaaa"), 0.0);
        assert_eq!(entropy(b"abab"), 1.0);
        assert_eq!(entropy(b"0123456789abcdef"), 4.0);
    }

    #[test]
    fn a_password_needs_more_than_letters() {
        assert!(Check::Password.passes(b"hunter2"));
        assert!(Check::Password.passes(b"let-me-in!"));
        assert!(!Check::Password.passes(b"required"));
        assert!(!Check::Password.passes(b"20261120"));
    }
}
