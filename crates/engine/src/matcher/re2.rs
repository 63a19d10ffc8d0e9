//! RE2's syntax (<https://github.com/google/re2/wiki/Syntax>) for a machine that reads another: where the two mean
//! different things by the same text, the pattern is respelled. `\d`, `\s`, `\w` and `\b` are ASCII, `\Q…\E` is
//! literal, a `{` that begins no repetition is a character, and in a class `[`, `&&`, `--` and `~~` are characters.

use std::iter::Peekable;
use std::str::Chars;

type Rest<'a> = Peekable<Chars<'a>>;

/// The same pattern, spelled for the `regex` crates. What is wrong with it stays wrong.
pub(crate) fn respelled(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '\\' => escape(&mut rest, &mut out, false),
            '[' => class(&mut rest, &mut out),
            '{' if !begins_a_repetition(&rest) => out.push_str("\\{"),
            char => out.push(char),
        }
    }
    out
}

/// What stands behind a backslash.
fn escape(rest: &mut Rest<'_>, out: &mut String, in_class: bool) {
    let Some(char) = rest.next() else { return out.push('\\') };
    let ascii = match char {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        'b' if !in_class => "(?-u:\\b)",
        'B' if !in_class => "(?-u:\\B)",
        'Q' if !in_class => return literal(rest, out),
        char => {
            out.push('\\');
            out.push(char);
            // `\p{Greek}` and `\x{41}`: their braces are no repetition.
            if matches!(char, 'p' | 'P' | 'x') && rest.peek() == Some(&'{') {
                out.extend(std::iter::from_fn(|| rest.next_if(|char| *char != '}')));
            }
            return;
        }
    };
    out.push_str(ascii);
}

/// Everything up to `\E`, or to the end.
fn literal(rest: &mut Rest<'_>, out: &mut String) {
    let mut text = String::new();
    while let Some(char) = rest.next() {
        if char == '\\' && rest.next_if_eq(&'E').is_some() {
            break;
        }
        text.push(char);
    }
    out.push_str(&regex_syntax::escape(&text));
}

/// A class up to its bracket, in which other brackets are characters.
fn class(rest: &mut Rest<'_>, out: &mut String) {
    out.push('[');
    out.extend(rest.next_if_eq(&'^'));
    if let Some(first) = rest.next_if(|char| matches!(char, ']' | '-')) {
        out.push('\\');
        out.push(first);
    }
    while let Some(char) = rest.next() {
        match char {
            ']' => return out.push(']'),
            '\\' => escape(rest, out, true),
            '[' if rest.peek() == Some(&':') => named_class(rest, out),
            '[' => out.push_str("\\["),
            '&' | '~' if rest.peek() == Some(&char) => {
                out.push('\\');
                out.push(char);
            }
            // A range up to the dash.
            '-' if rest.next_if_eq(&'-').is_some() => out.push_str("-\\-"),
            char => out.push(char),
        }
    }
}

/// `[:alpha:]`, or a bracket and what follows it.
fn named_class(rest: &mut Rest<'_>, out: &mut String) {
    let name: String = rest.clone().take_while(|char| *char != ']').collect();
    if name.len() > 2 && name.ends_with(':') {
        out.push('[');
        out.extend(rest.by_ref().take(name.chars().count()));
    } else {
        out.push_str("\\[");
    }
}

/// Whether `{` is followed by `n}`, `n,}` or `n,m}`.
fn begins_a_repetition(rest: &Rest<'_>) -> bool {
    let inside: String = rest.clone().take_while(|char| *char != '}').collect();
    let is_closed = rest.clone().nth(inside.chars().count()) == Some('}');
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
    is_closed && is_number(least) && (most.is_empty() || is_number(most))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::meta::Regex;

    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        Regex::new(&format!("^(?:{})$", respelled(pattern))).unwrap().is_match(text)
    }

    #[test]
    fn a_pattern_means_what_re2_says() {
        for (pattern, fitting, other) in [
            (r"\d\w\s", "1a ", "٣a "),
            (r"\w", "a", "é"),
            (r"[\w-]+", "a-b", "é"),
            (r"[^\d]", "a", "1"),
            (r"\D\S\W", "aa-", "1a-"),
            (r"\bsh\b", "sh", "a"),
            (r".\b.", "éa", "ab"),
            (r"\Qa.b\E+", "a.bb", "axb"),
            (r"\Qa*", "a*", "aa"),
            ("a{", "a{", "a"),
            ("a{,2}", "a{,2}", "aa"),
            ("a{2}", "aa", "a"),
            ("a{1,}b{1,2}", "aabb", "b"),
            ("[[a]+", "[a", "b"),
            ("[]a]+", "]a", "b"),
            ("[^]a]", "b", "]"),
            ("[a&&b]", "&", "c"),
            ("[a~~]", "~", "b"),
            ("[+--]", ",", "b"),
            ("[--/]", ".", "b"),
            ("[a-]", "-", "b"),
            ("[[:alpha:]_]+", "ab_", "1"),
            ("[[:]+", "[:", "a"),
            (r"\x{41}{2}", "AA", "A"),
            (r"\p{Greek}{2}", "αβ", "ab"),
            (r"(?P<name>x)|(?i:Y)", "y", "z"),
        ] {
            assert!(fits(pattern, fitting), "{pattern} fits {fitting}");
            assert!(!fits(pattern, other), "{pattern} does not fit {other}");
        }
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        for pattern in ["(", "[", "[a", "*", "a)(b", r"\", "(?=x)", "a{2", r"\p{Nowhere}"] {
            let is_wrong = Regex::new(&respelled(pattern)).is_err();
            assert_eq!(is_wrong, pattern != "a{2", "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn a_text_of_letters_stays(text in "[a-z_|.*+?()^$]*") {
            prop_assert_eq!(respelled(&text), text);
        }

        #[test]
        fn any_text_is_respelled(text in r"(\PC|[\[\]{}\\&~:^-]){0,20}") {
            let _ = respelled(&text);
        }

        #[test]
        fn quoted_text_is_itself(text in r"[^\\]{0,12}") {
            let pattern = format!("\\Q{text}\\E");
            prop_assert!(fits(&pattern, &text), "{}", pattern);
        }
    }
}
