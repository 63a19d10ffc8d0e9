//! Text from hooks, made safe for screens, logs and HTTP bodies.

use std::borrow::Cow;

/// Strips control characters but line breaks and tabs, terminal escape sequences, and what reverses the reading
/// direction. Text without them is not copied.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => match chars.next() {
                Some('[') => skip_control_sequence(&mut chars),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut chars),
                Some('\u{20}'..='\u{2f}') => drop(chars.next()),
                _ => {}
            },
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            char if is_control(char) => {}
            char => plain.push(char),
        }
    }
    Cow::Owned(plain)
}

/// The same for text that is owned.
pub(crate) fn into_plain(text: String) -> String {
    match plain(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(plain) => plain,
    }
}

fn is_control(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        char => char.is_control(),
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// `CSI`: parameters up to a final byte.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|char| matches!(char, '\u{20}'..='\u{3f}')).is_some() {}
    chars.next_if(|char| matches!(char, '\u{40}'..='\u{7e}'));
}

/// A command string: everything up to its terminator, but never past the end of a line.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(char) = chars.next_if(|char| *char != '\n') {
        match char {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_go_and_the_text_between_them_stays() {
        for (text, want) in [
            ("plain\n\ttext ✓", "plain\n\ttext ✓"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("\u{9b}2Jgone", "gone"),
            ("a\r\u{8}b\0", "ab"),
            ("\u{202e}txt.exe", "txt.exe"),
            ("\u{1b}", ""),
            ("\u{1b}]never ends\nnext line", "\nnext line"),
        ] {
            assert_eq!(plain(text), want, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(text in any::<String>()) {
            prop_assert!(!plain(&text).chars().any(is_control));
        }
    }
}
