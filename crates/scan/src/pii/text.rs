//! A text that may still grow, and what is read of it.

use std::cell::Cell;

/// A text being searched. Who reads behind its end while it may still grow has not decided anything: [`Text::reads`].
pub(super) struct Text<'t> {
    whole: &'t str,
    ended: bool,
    /// Something behind the end was asked for, and more text could answer otherwise.
    open: Cell<bool>,
}

/// What stands between two groups of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sep {
    /// A space, also one that does not break.
    Space,
    /// A dash: hyphen-minus, hyphen, one that does not break, or the dash of ranges.
    Dash,
    Dot,
    Slash,
}

/// A run of digits, and what joins it to the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) sep: Option<Sep>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Group {
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// More digits in a run than anything here has; the rest of it is not read.
const RUN: usize = 20;

impl<'t> Text<'t> {
    pub(super) fn new(whole: &'t str, ended: bool) -> Self {
        Self { whole, ended, open: Cell::new(false) }
    }

    pub(super) fn whole(&self) -> &'t str {
        self.whole
    }

    /// What `look` finds, and whether more text could change that.
    pub(super) fn reads<T>(&self, look: impl FnOnce() -> T) -> (T, bool) {
        self.open.set(false);
        let found = look();
        (found, self.open.get())
    }

    /// The byte at `at`.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        let byte = self.whole.as_bytes().get(at).copied();
        self.note(byte.is_none());
        byte
    }

    /// The character at `at`.
    pub(super) fn char(&self, at: usize) -> Option<char> {
        let char = self.whole.get(at..).and_then(|rest| rest.chars().next());
        self.note(char.is_none());
        char
    }

    fn note(&self, behind: bool) {
        if behind && !self.ended {
            self.open.set(true);
        }
    }

    /// The byte before `at`.
    pub(super) fn before(&self, at: usize) -> Option<u8> {
        self.whole.as_bytes().get(at.checked_sub(1)?).copied()
    }

    /// What stands before `at`.
    pub(super) fn head(&self, at: usize) -> &'t str {
        self.whole.get(..at).unwrap_or_default()
    }

    /// Whether a letter or a digit (ASCII) stands directly before `at` that is not the letter of an escape, as in `\n`.
    pub(super) fn is_after_word(&self, at: usize) -> bool {
        let is_escape = matches!(self.head(at).as_bytes(), [.., b'\\', b'n' | b'r' | b't']);
        !is_escape && self.before(at).is_some_and(|byte| byte.is_ascii_alphanumeric())
    }

    /// Whether a letter or a digit (ASCII) stands at `at`.
    pub(super) fn is_word(&self, at: usize) -> bool {
        self.byte(at).is_some_and(|byte| byte.is_ascii_alphanumeric())
    }

    pub(super) fn is_digit(&self, at: usize) -> bool {
        self.byte(at).is_some_and(|byte| byte.is_ascii_digit())
    }

    /// The end of the digits from `at`; at most [`RUN`] of them are read.
    pub(super) fn digits(&self, at: usize) -> usize {
        at + (0..RUN).take_while(|ahead| self.is_digit(at + ahead)).count()
    }

    /// The separator at `at`, and where it ends.
    pub(super) fn sep(&self, at: usize) -> Option<(Sep, usize)> {
        let char = self.char(at)?;
        Some((separator(char)?, at + char.len_utf8()))
    }

    /// The separator that ends at `at` and has a digit before it.
    pub(super) fn joined(&self, at: usize) -> Option<Sep> {
        let char = self.head(at).chars().next_back()?;
        let sep = separator(char)?;
        self.before(at - char.len_utf8()).filter(u8::is_ascii_digit).map(|_| sep)
    }

    /// Whether a digit follows behind the separator `sep` at `at`.
    pub(super) fn goes_on(&self, at: usize, sep: Sep) -> bool {
        self.sep(at).is_some_and(|(found, end)| found == sep && self.is_digit(end))
    }

    /// Whether the number up to `at` goes on as a decimal fraction.
    pub(super) fn is_fraction(&self, at: usize) -> bool {
        self.byte(at) == Some(b'.') && self.is_digit(at + 1)
    }

    /// The groups of digits from `at`, joined by single separators. Nothing behind the group last asked for is read.
    pub(super) fn groups(&self, at: usize) -> impl Iterator<Item = Group> {
        let mut last: Option<Group> = None;
        std::iter::from_fn(move || {
            let (sep, start) = match last {
                None => (None, at),
                Some(last) => self.sep(last.end).map(|(sep, end)| (Some(sep), end))?,
            };
            let end = self.digits(start);
            last = Some(Group { sep, start, end });
            last.filter(|group| group.len() > 0)
        })
        .fuse()
    }
}

const fn separator(char: char) -> Option<Sep> {
    match char {
        ' ' | '\u{a0}' | '\u{202f}' | '\u{2007}' => Some(Sep::Space),
        '-' | '\u{2010}' | '\u{2011}' | '\u{2013}' => Some(Sep::Dash),
        '.' => Some(Sep::Dot),
        '/' => Some(Sep::Slash),
        _ => None,
    }
}
