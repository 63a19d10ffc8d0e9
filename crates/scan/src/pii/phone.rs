//! Telephone numbers: with the code of a country, and as they are written within some.
//!
//! A number without `+` is one only where it is written in groups, and in groups as phone numbers have them: digits alone
//! are identifiers, amounts, times.

use super::search::Attempt;
use super::text::{Group, Sep, Text};
use super::words;

/// Digits of the longest number, its country's code included, and of the shortest (ITU-T E.164).
const MOST: usize = 15;
const LEAST: usize = 8;

/// Codes of countries, and how many digits follow them there, least and most (<https://en.wikipedia.org/wiki/E.164>).
/// Where a country is missing, [`OTHERS`].
const COUNTRIES: &[(&str, usize, usize)] = &[
    ("1", 10, 10),
    ("20", 8, 10),
    ("27", 9, 9),
    ("30", 10, 10),
    ("31", 9, 9),
    ("32", 8, 9),
    ("33", 9, 9),
    ("34", 9, 9),
    ("351", 9, 9),
    ("353", 7, 9),
    ("36", 8, 9),
    ("380", 9, 9),
    ("40", 9, 9),
    ("41", 9, 9),
    ("420", 9, 9),
    ("44", 9, 10),
    ("45", 8, 8),
    ("46", 7, 9),
    ("47", 8, 8),
    ("48", 9, 9),
    ("51", 8, 9),
    ("52", 10, 11),
    ("54", 10, 11),
    ("55", 10, 11),
    ("56", 9, 9),
    ("57", 10, 10),
    ("60", 8, 10),
    ("61", 9, 9),
    ("65", 8, 8),
    ("7", 10, 10),
    ("81", 9, 10),
    ("82", 8, 10),
    ("86", 10, 11),
    ("852", 8, 8),
    ("90", 10, 10),
    ("91", 10, 10),
    ("92", 9, 10),
    ("971", 8, 9),
    ("972", 8, 9),
    ("98", 10, 10),
];
const OTHERS: (usize, usize) = (6, 12);

/// How numbers without a leading zero are written within countries: the digits it begins with, and its groups.
const SHAPES: &[(&[&str], &[usize])] = &[
    (&["1", "2", "3", "4", "5", "6", "7", "8", "9"], &[3, 3, 4]), // North America
    (&["1"], &[1, 3, 3, 4]),                                      // North America
    (&["13", "14", "15", "16", "17", "18", "19"], &[3, 4, 4]),    // China
    (&["8"], &[1, 3, 3, 2, 2]),                                   // Russia
    (&["1", "2", "3", "4", "5", "6", "7", "8", "9"], &[2, 5, 4]), // Brazil
];

/// What makes three numbers beside each other one of a telephone.
const PHONES: [&str; 19] = [
    "appel",
    "call",
    "cell",
    "dial",
    "fax",
    "handy",
    "landline",
    "mobil",
    "mobile",
    "number",
    "phone",
    "ring",
    "sms",
    "tel",
    "telefon",
    "telefono",
    "telephone",
    "text",
    "whatsapp",
];

/// The number that begins with the digits at `at`, or with a `+` before them.
pub(super) fn find(text: &Text<'_>, at: usize) -> Option<Attempt> {
    let is_abroad = text.before(at) == Some(b'+');
    let start = if is_abroad { at - 1 } else { at };
    if text.is_after_word(start) || (is_abroad && text.before(start) == Some(b'+')) {
        return None;
    }
    let end = match is_abroad {
        true => abroad(text, at),
        false => from_abroad(text, at).or_else(|| trunk(text, at)).or_else(|| shaped(text, at)),
    };
    Some(Attempt { start, end })
}

/// The number that begins with a bracket before the digits at `at`.
pub(super) fn find_bracket(text: &Text<'_>, at: usize) -> Option<Attempt> {
    let start = at.checked_sub(1).filter(|&start| text.byte(start) == Some(b'(') && !text.is_after_word(start))?;
    Some(Attempt { start, end: in_brackets(text, at) })
}

/// The length of the country's code that the digits begin with.
fn code(digits: &str) -> Option<usize> {
    let two = digits.get(..2).and_then(|two| two.parse().ok());
    match (digits.bytes().next()?, two) {
        (b'0', _) | (_, Some(28 | 83 | 89)) => None,
        (b'1' | b'7', _) => Some(1),
        (
            _,
            Some(20 | 27 | 30..=34 | 36 | 39..=41 | 43..=49 | 51..=58 | 60..=66 | 81 | 82 | 84 | 86 | 90..=95 | 98),
        ) => Some(2),
        (_, two) => two.map(|_| 3),
    }
}

/// The end of a number with its country's code, from the code.
fn abroad(text: &Text<'_>, at: usize) -> Option<usize> {
    let (mut digits, mut in_groups) = (String::new(), false);
    let (mut expected, mut possible) = (None, None);
    let mut last: Option<Part> = None;
    for part in Parts::new(text, at) {
        let part_digits = text.head(part.end).get(part.start..)?;
        // The zero of `+49 (0)30` is not dialled.
        if !(part.bracketed && part_digits == "0") {
            digits.push_str(part_digits);
        }
        in_groups |= part.start > at;
        let code = code(&digits)?;
        let is_another = expected.is_some() && last.is_some_and(|last| part.is_another(last));
        if digits.len() > MOST || is_another {
            break;
        }
        last = Some(part);
        let (_, least, most) = *COUNTRIES
            .iter()
            .find(|(known, ..)| digits.get(..code) == Some(*known))
            .unwrap_or(&("", OTHERS.0, OTHERS.1));
        let follow = digits.len().saturating_sub(code);
        if ends_well(text, part.end) && digits.len() >= LEAST {
            if (least..=most).contains(&follow) {
                expected = Some(part.end);
            } else if in_groups && digits.get(..code) != Some("1") {
                possible = Some(part.end);
            }
        }
        if follow >= most && expected.is_some() {
            break;
        }
    }
    expected.or(possible)
}

/// The end of a number that begins as in `0049 30 123456`.
fn from_abroad(text: &Text<'_>, at: usize) -> Option<usize> {
    let first = text.groups(at).next()?;
    let digits = text.head(first.end).get(at..)?.strip_prefix("00")?;
    let is_code = code(digits) == Some(digits.len());
    if !is_code || text.joined(at).is_some() {
        return None;
    }
    abroad(text, at + 2)
}

/// The end of a number with its area in brackets, from the area: `(030) 123456`, `(415) 555-2671`.
fn in_brackets(text: &Text<'_>, at: usize) -> Option<usize> {
    let mut parts = Parts::new(text, at);
    let area = parts.next()?;
    let is_year = area.len() == 4 && text.byte(at) != Some(b'0');
    if !(2..=5).contains(&area.len()) || is_year || text.byte(area.end) != Some(b')') {
        return None;
    }
    let mut last: Option<Part> = None;
    let (mut digits, mut end) = (area.len(), None);
    for part in parts {
        digits += part.len();
        let is_other = last.is_some_and(|last| {
            let other_sep = last.sep.is_some() && last.sep != part.sep && part.sep != Some(Sep::Dash);
            part.bracketed || other_sep || (end.is_some() && part.is_another(last))
        });
        if is_other || part.len() < 2 || digits > 12 {
            break;
        }
        if digits >= 9 && ends_well(text, part.end) {
            end = Some(part.end);
        }
        last = Some(part);
    }
    end
}

/// The end of a number that begins with a zero: `030 1234567`, `0151/12345678`, `06.12.34.56.78`.
fn trunk(text: &Text<'_>, at: usize) -> Option<usize> {
    let before = text.joined(at);
    let begins = text.byte(at) == Some(b'0') && text.byte(at + 1) != Some(b'0');
    if !begins || before.is_some_and(|sep| sep != Sep::Space) {
        return None;
    }
    let mut parts = Parts::new(text, at);
    let area = parts.next().filter(|area| (2..=6).contains(&area.len()))?;
    let second = parts.next().filter(|second| second.len() >= 2)?;
    if area.len() == 2 && second.len() == 2 {
        return pairs(text, at, second.sep?);
    }
    let (mut digits, mut end) = (area.len() + second.len(), None);
    let (mut last, mut sep) = (second, None);
    loop {
        if digits > 12 || last.len() < 2 {
            break;
        }
        if digits >= 9 && ends_well(text, last.end) {
            // Numbers before it and behind it: a row of them.
            if before.is_some() && text.goes_on(last.end, Sep::Space) {
                return None;
            }
            end = Some(last.end);
        }
        let Some(next) = parts.next().filter(|next| !next.bracketed && sep.is_none_or(|sep| next.sep == sep)) else {
            break;
        };
        if end.is_some() && next.is_another(last) {
            break;
        }
        (digits, last, sep) = (digits + next.len(), next, Some(next.sep));
    }
    end
}

/// The end of five pairs of digits. One number may follow, as in a sentence; more are a row of numbers.
fn pairs(text: &Text<'_>, at: usize, sep: Sep) -> Option<usize> {
    let mut groups = text.groups(at);
    let joined = |group: &Group| group.start == at || group.sep == Some(sep);
    let mut end = at;
    for _ in 0..5 {
        end = groups.next().filter(|group| group.len() == 2 && joined(group))?.end;
    }
    let more = groups.take_while(joined).take(2).count();
    let most = if sep == Sep::Space { 1 } else { 0 };
    (more <= most && text.joined(at) != Some(sep) && ends_well(text, end)).then_some(end)
}

/// The end of a number in one of the [`SHAPES`].
fn shaped(text: &Text<'_>, at: usize) -> Option<usize> {
    SHAPES.iter().find_map(|(begins, shape)| {
        let first = text.groups(at).next().filter(|first| Some(&first.len()) == shape.first())?;
        let digits = text.head(first.end).get(at..)?;
        let fits = begins.iter().any(|begin| digits.starts_with(begin));
        if fits { shape_end(text, at, shape) } else { None }
    })
}

fn shape_end(text: &Text<'_>, at: usize, shape: &[usize]) -> Option<usize> {
    let (mut end, mut only_spaces, mut seps) = (at, true, Vec::new());
    let mut parts = Parts::new(text, at);
    for length in shape {
        let part = parts.next().filter(|part| part.len() == *length)?;
        if part.start > at {
            seps.push(part.sep);
            only_spaces &= part.sep == Some(Sep::Space) && !part.bracketed;
        }
        end = part.end;
    }
    let last = seps.last().copied().flatten()?;
    let is_one_of_more = text.joined(at).is_some_and(|sep| sep != Sep::Space || seps.contains(&Some(sep)))
        || (!only_spaces && text.goes_on(end, last));
    let is_dated = seps.contains(&Some(Sep::Slash));
    // Three numbers beside each other are mostly just that.
    let is_number = !only_spaces || words::stand_before(text, at, &PHONES);
    (is_number && !is_one_of_more && !is_dated && ends_well(text, end)).then_some(end)
}

/// Whether a number may end at `at`: before no letter but that of an extension.
fn ends_well(text: &Text<'_>, at: usize) -> bool {
    !text.is_word(at) || matches!(text.byte(at), Some(b'x' | b'X' | b'e'))
}

/// A run of digits, perhaps in brackets.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// What stands between it and the one before.
    sep: Option<Sep>,
    bracketed: bool,
    start: usize,
    end: usize,
}

impl Part {
    fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether it looks like another number, behind a complete one that ends with `last`.
    fn is_another(&self, last: Part) -> bool {
        self.len() < 2 || (self.sep == Some(Sep::Space) && self.len() == 2 && last.len() > 3)
    }
}

/// Runs of digits, joined by one separator, by ` / `, or by brackets.
struct Parts<'a, 't> {
    text: &'a Text<'t>,
    last: Option<Part>,
    at: usize,
}

impl<'a, 't> Parts<'a, 't> {
    fn new(text: &'a Text<'t>, at: usize) -> Self {
        Self { text, last: None, at }
    }

    /// What joins the next run: where it begins, what separates it, and whether a bracket opens.
    fn joint(&self, end: usize) -> Option<(usize, Option<Sep>, bool)> {
        let mut at = end;
        if self.text.byte(at) == Some(b')') {
            at += 1;
        }
        let mut sep = self.text.sep(at);
        if let Some((Sep::Space, behind)) = sep
            && let Some((Sep::Slash, slash)) = self.text.sep(behind)
            && let Some((Sep::Space, behind)) = self.text.sep(slash)
        {
            sep = Some((Sep::Slash, behind));
        }
        at = sep.map_or(at, |(_, behind)| behind);
        let opens = self.text.byte(at) == Some(b'(');
        at += usize::from(opens);
        (at > end).then_some((at, sep.map(|(sep, _)| sep), opens))
    }
}

impl Iterator for Parts<'_, '_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (start, sep, bracketed) = match self.last {
            None => (self.at, None, false),
            Some(last) => self.joint(last.end)?,
        };
        let end = self.text.digits(start);
        let part = Part { sep, bracketed, start, end };
        self.last = Some(part);
        (part.len() > 0).then_some(part)
    }
}

/// Where a sign stands that a number may begin with.
pub(super) fn begun(text: &Text<'_>, end: usize) -> usize {
    end - usize::from(text.before(end).is_some_and(|sign| b"+(".contains(&sign)))
}
