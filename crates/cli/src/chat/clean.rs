//! What others wrote, made fit for a terminal: nothing of it can move the cursor, colour, ring or hide.
//!
//! Models, tools and files are not to be trusted with a terminal. So each character that a terminal would obey, and each
//! that a reader could not see, becomes one that is seen. Only line breaks and tabs stay.

use std::borrow::Cow;
use std::fmt::Write;

/// Characters that show nothing, or turn the order of what is shown: bidirectional controls, joiners of nothing, fillers,
/// tags, and selectors that can carry hidden text.
const INVISIBLE: [(u32, u32); 15] = [
    (0x80, 0x9f),
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x61c, 0x61c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200b),
    (0x200e, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x206f),
    (0x3164, 0x3164),
    (0xfeff, 0xfeff),
    (0xfff0, 0xfffb),
    (0xe0000, 0xe0fff),
];

/// All that is in a text, for whoever has to judge it: arguments of a call, a rule, a name.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|char| push(&mut shown, char));
    Cow::Owned(shown)
}

/// The same in one line: breaks and tabs are seen too.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    match shown(text) {
        text if !text.contains(['\n', '\t']) => text,
        text => Cow::Owned(text.replace('\n', "⏎").replace('\t', " ")),
    }
}

/// What a program or a model printed: colours and other sequences that end properly are left out, of a line that is
/// written over stands what was written last, and all else is shown.
pub(crate) fn printed(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\u{9b}', '\r']) {
        return shown(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let after = rest.get(char.len_utf8()..).unwrap_or_default();
        match char {
            '\u{1b}' | '\u{9b}' => match sequence(rest) {
                Some(after) => {
                    rest = after;
                    continue;
                }
                None => push(&mut clean, char),
            },
            '\r' if after.starts_with('\n') || after.is_empty() => {}
            // The line begins again.
            '\r' => clean.truncate(clean.rfind('\n').map_or(0, |end| end.saturating_add(1))),
            char => push(&mut clean, char),
        }
        rest = after;
    }
    Cow::Owned(clean)
}

/// What follows a control sequence (`CSI … final`), where the text begins with one.
fn sequence(text: &str) -> Option<&str> {
    let body = text.strip_prefix("\u{1b}[").or_else(|| text.strip_prefix('\u{9b}'))?;
    let end = body.find(|char| !matches!(char, '\u{20}'..='\u{3f}'))?;
    let (_, tail) = body.split_at_checked(end)?;
    tail.strip_prefix(|char| matches!(char, '\u{40}'..='\u{7e}'))
}

fn is_plain(char: char) -> bool {
    match char {
        ' '..='~' | '\n' | '\t' => true,
        char => !char.is_control() && !is_invisible(char),
    }
}

fn is_invisible(char: char) -> bool {
    let code = u32::from(char);
    code >= 0x80 && INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

fn push(text: &mut String, char: char) {
    match char {
        char if is_plain(char) => text.push(char),
        // The pictures of the control characters stand in their order.
        '\0'..='\u{1f}' => text.push(char::from_u32(u32::from(char).saturating_add(0x2400)).unwrap_or('?')),
        '\u{7f}' => text.push('␡'),
        char => {
            // Writing to a string does not fail.
            let _ = write!(text, "<U+{:04X}>", u32::from(char));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_seen() {
        assert_eq!(shown("a\u{1b}[2Jb\u{7}"), "a␛[2Jb␇");
        assert_eq!(shown("\u{9b}31m"), "<U+009B>31m");
        assert_eq!(shown("x\u{202e}y\u{200b}z\u{e0041}"), "x<U+202E>y<U+200B>z<U+E0041>");
        assert_eq!(line("a\nb\tc"), "a⏎b c");
    }

    #[test]
    fn joined_emoji_and_marks_stay() {
        for text in ["👨‍👩‍👧‍👦", "e\u{301}", "❤\u{fe0f}", "नमस्ते", "日本語"] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn colours_of_a_program_are_left_out_and_the_rest_is_seen() {
        assert_eq!(printed("\u{1b}[1;31mred\u{1b}[0m"), "red");
        assert_eq!(printed("\u{1b}]0;title\u{7}"), "␛]0;title␇");
        assert_eq!(printed("\u{1b}[31"), "␛[31");
    }

    #[test]
    fn a_line_that_is_written_over_shows_what_was_written_last() {
        assert_eq!(printed("a\r\n10 %\r50 %\r100 %\nend\r"), "a\n100 %\nend");
    }

    proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left(text in "\\PC*|(?s).*") {
            for clean in [shown(&text), printed(&text), line(&text)] {
                prop_assert!(clean.chars().all(is_plain), "{clean:?}");
            }
        }
    }
}
