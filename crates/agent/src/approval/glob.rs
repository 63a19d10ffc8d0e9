//! Globs over names and arguments: in any case, and over any character, separators and line breaks too.

/// A pattern over a whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// `?`
    One,
    /// `*`
    Many,
    /// `[a-z]`, `[^a-z]`
    Set {
        not: bool,
        ranges: Vec<(char, char)>,
    },
}

/// Why a text is no glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum GlobError {
    #[error("`[]` fits nothing")]
    EmptySet,
    #[error("a range in `[…]` ends before it begins")]
    Backwards,
}

impl Glob {
    /// Reads a pattern. `\` takes the next character as it is; a `[` that is never closed is one too.
    pub(super) fn parse(text: &str) -> Result<Self, GlobError> {
        let mut pieces = Vec::new();
        let mut rest = lower(text).peekable();
        while let Some(char) = rest.next() {
            pieces.push(match char {
                '*' => Piece::Many,
                '?' => Piece::One,
                '\\' => Piece::Char(rest.next().unwrap_or('\\')),
                '[' => {
                    let mut ahead = rest.clone();
                    match set(&mut ahead)? {
                        Some(set) => {
                            rest = ahead;
                            set
                        }
                        None => Piece::Char('['),
                    }
                }
                char => Piece::Char(char),
            });
        }
        Ok(Self { pieces })
    }

    /// The pattern that fits this text alone.
    pub(super) fn of(text: &str) -> Self {
        Self { pieces: lower(text).map(Piece::Char).collect() }
    }

    /// Whether it fits the whole of a text. Takes no more steps than the product of their lengths.
    pub(super) fn fits(&self, text: &str) -> bool {
        let text: Vec<char> = lower(text).collect();
        let (mut piece, mut at) = (0, 0);
        // What follows the last `*`, and the first place where it has not been tried.
        let mut again: Option<(usize, usize)> = None;
        loop {
            match (self.pieces.get(piece), text.get(at)) {
                (None, None) => return true,
                (Some(Piece::Many), _) => {
                    piece += 1;
                    again = Some((piece, at));
                }
                (Some(one), Some(char)) if one.fits(*char) => (piece, at) = (piece + 1, at + 1),
                _ => match again {
                    Some((after, from)) if from < text.len() => {
                        (piece, at) = (after, from + 1);
                        again = Some((after, from + 1));
                    }
                    _ => return false,
                },
            }
        }
    }

    /// Whether it is `*`.
    pub(super) fn is_everything(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(|piece| *piece == Piece::Many)
    }

    /// The one text that it fits, in lower case; `None` where it fits several.
    pub(super) fn literal(&self) -> Option<String> {
        self.pieces.iter().map(Piece::char).collect()
    }

    /// What stands before its only `*`, which ends it, in lower case.
    pub(super) fn prefix(&self) -> Option<String> {
        let (last, before) = self.pieces.split_last()?;
        (*last == Piece::Many).then(|| before.iter().map(Piece::char).collect())?
    }

    /// Whether it names such a character.
    pub(super) fn names(&self, wanted: impl Fn(char) -> bool) -> bool {
        self.pieces.iter().filter_map(Piece::char).any(wanted)
    }
}

impl Piece {
    fn char(&self) -> Option<char> {
        match self {
            Piece::Char(char) => Some(*char),
            Piece::One | Piece::Many | Piece::Set { .. } => None,
        }
    }

    fn fits(&self, found: char) -> bool {
        match self {
            Piece::Char(char) => *char == found,
            Piece::One => true,
            Piece::Many => false,
            Piece::Set { not, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&found)) != *not,
        }
    }
}

/// Reads a set behind its `[`; `None` where nothing closes it.
fn set(rest: &mut (impl Iterator<Item = char> + Clone)) -> Result<Option<Piece>, GlobError> {
    let mut members = Vec::new();
    let mut not = false;
    let mut closed = false;
    let mut first = true;
    while let Some(char) = rest.next() {
        match char {
            '^' if first => not = true,
            ']' => {
                closed = true;
                break;
            }
            '\\' => members.extend(rest.next().map(|char| (char, true))),
            char => members.push((char, false)),
        }
        first = false;
    }
    if !closed {
        return Ok(None);
    }
    let mut ranges = Vec::new();
    let mut rest = members.iter().copied().peekable();
    while let Some((from, _)) = rest.next() {
        let mut ahead = rest.clone();
        match (ahead.next(), ahead.next()) {
            (Some(('-', false)), Some((to, _))) => {
                if to < from {
                    return Err(GlobError::Backwards);
                }
                ranges.push((from, to));
                rest = ahead;
            }
            _ => ranges.push((from, from)),
        }
    }
    if ranges.is_empty() { Err(GlobError::EmptySet) } else { Ok(Some(Piece::Set { not, ranges })) }
}

/// A text without its case, character by character, so that pattern and text are treated alike.
pub(super) fn lower(text: &str) -> impl Iterator<Item = char> + Clone + '_ {
    text.chars().flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_glob_fits_a_whole_text_in_any_case() {
        for (pattern, text, fits) in [
            ("shell", "Shell", true),
            ("shell", "shells", false),
            ("read_*", "read_file", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("rm*-rf*", "rm -r -rf /", true),
            ("rm*-rf*", "rm -f", false),
            ("a?c", "a\nc", true),
            ("/etc/*", "/etc/a/b", true),
            ("*.rs", "a.rs.rs", true),
            ("[a-c]x", "Bx", true),
            ("[^a-c]x", "bx", false),
            ("[a\\]]", "]", true),
            ("[-a]", "-", true),
            ("a[b", "a[b", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().fits(text), fits, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_set_that_fits_nothing_is_an_error() {
        assert_eq!(Glob::parse("a[]b"), Err(GlobError::EmptySet));
        assert_eq!(Glob::parse("[^]"), Err(GlobError::EmptySet));
        assert_eq!(Glob::parse("[z-a]"), Err(GlobError::Backwards));
    }

    /// What a glob means, said without a thought of cost.
    fn fits(pieces: &[Piece], text: &[char]) -> bool {
        match (pieces.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((Piece::Many, after)), rest) => fits(after, text) || rest.is_some_and(|(_, rest)| fits(pieces, rest)),
            (Some((one, after)), Some((char, rest))) => one.fits(*char) && fits(after, rest),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_panic(pattern in "\\PC*", text in "\\PC*") {
            if let Ok(glob) = Glob::parse(&pattern) {
                glob.fits(&text);
            }
        }

        #[test]
        fn it_fits_what_its_meaning_fits(pattern in "[ab*?\\[\\]^-]{0,8}", text in "[ab^-]{0,8}") {
            if let Ok(glob) = Glob::parse(&pattern) {
                let chars: Vec<char> = text.chars().collect();
                prop_assert_eq!(glob.fits(&text), fits(&glob.pieces, &chars));
            }
        }

        #[test]
        fn an_escaped_text_fits_itself_alone(text in "[a-z*?\\[\\\\ ]{0,12}", other in "[a-z*?\\[\\\\ ]{0,12}") {
            let escaped: String = text.chars().flat_map(|char| ['\\', char]).collect();
            let glob = Glob::parse(&escaped).unwrap();
            prop_assert_eq!(glob.fits(&other), text == other);
            prop_assert_eq!(glob.literal(), Some(text));
        }
    }
}
