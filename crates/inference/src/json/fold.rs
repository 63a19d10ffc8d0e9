//! Keys that a lenient reader takes for another key.

/// Letters outside of ASCII that some case folding turns into ASCII letters: Unicode's simple folding
/// (<https://www.unicode.org/Public/UCD/latest/ucd/CaseFolding.txt>), which Go's encoding/json applies, its full
/// folding, and the dotted and dotless i.
const FOLDS: &[(char, &str)] = &[
    ('\u{17f}', "s"),
    ('\u{212a}', "k"),
    ('\u{130}', "i"),
    ('\u{131}', "i"),
    ('\u{df}', "ss"),
    ('\u{1e9e}', "ss"),
    ('\u{fb00}', "ff"),
    ('\u{fb01}', "fi"),
    ('\u{fb02}', "fl"),
    ('\u{fb03}', "ffi"),
    ('\u{fb04}', "ffl"),
    ('\u{fb05}', "st"),
    ('\u{fb06}', "st"),
];

/// The word of `known`, all in lower case, that a lenient reader takes `word` for, which is not exactly it.
pub(crate) fn mistaken<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return None;
    }
    // No folding makes a word more than three times as short or long; what is longer is not looked at.
    let longest = known.iter().map(|candidate| candidate.len()).max().unwrap_or_default();
    if word.len() > 3 * longest {
        return None;
    }
    let folded = fold(word);
    known.iter().copied().find(|candidate| *candidate == folded)
}

fn fold(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for character in word.chars() {
        match FOLDS.iter().find(|(from, _)| *from == character) {
            Some((_, to)) => out.push_str(to),
            None => out.push(character.to_ascii_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_other_case_is_mistaken_and_the_word_itself_is_not() {
        let known = ["messages", "tokens", "file_id"];
        for (word, mistaken_for) in [
            ("messages", None),
            ("Messages", Some("messages")),
            ("me\u{17f}\u{17f}ages", Some("messages")),
            ("me\u{1e9e}ages", Some("messages")),
            ("to\u{212a}ens", Some("tokens")),
            ("\u{fb01}le_\u{130}d", Some("file_id")),
            ("MESSAGES_", None),
            ("\u{17f}", None),
        ] {
            assert_eq!(mistaken(word, &known), mistaken_for, "{word}");
        }
    }
}
