//! Numbers of payment cards.

use super::search::Attempt;
use super::text::{Sep, Text};

/// What the first digits of a number say of its issuer: the least and the greatest of so many digits, and how many digits
/// such numbers have (<https://en.wikipedia.org/wiki/Payment_card_number>).
const ISSUERS: [(u32, u32, &[usize]); 23] = [
    (4, 4, &[13, 16, 19]),                       // Visa
    (51, 55, &[16]),                             // Mastercard
    (2221, 2720, &[16]),                         // Mastercard
    (34, 34, &[15]),                             // American Express
    (37, 37, &[15]),                             // American Express
    (300, 305, &[14, 16, 19]),                   // Diners Club
    (3095, 3095, &[14, 16, 19]),                 // Diners Club
    (36, 36, &[14, 16, 19]),                     // Diners Club
    (38, 39, &[14, 16, 19]),                     // Diners Club
    (3528, 3589, &[16, 17, 18, 19]),             // JCB
    (6011, 6011, &[16, 17, 18, 19]),             // Discover
    (644, 649, &[16, 17, 18, 19]),               // Discover
    (65, 65, &[16, 17, 18, 19]),                 // Discover, RuPay
    (60, 60, &[16]),                             // RuPay, Hipercard
    (62, 62, &[16, 17, 18, 19]),                 // UnionPay
    (81, 82, &[16, 17, 18, 19]),                 // UnionPay, RuPay
    (508, 508, &[16]),                           // RuPay
    (2200, 2204, &[16, 17, 18, 19]),             // Mir
    (5018, 5020, &[13, 14, 15, 16, 17, 18, 19]), // Maestro
    (5893, 5893, &[13, 14, 15, 16, 17, 18, 19]), // Maestro
    (6304, 6304, &[13, 14, 15, 16, 17, 18, 19]), // Maestro
    (6759, 6763, &[13, 14, 15, 16, 17, 18, 19]), // Maestro
    (9792, 9792, &[16]),                         // Troy
];

/// Digits of the longest number.
const MOST: usize = 19;
/// Digits of each group but the last, where a number is written in groups.
const GROUP: usize = 4;

/// The number that begins with the digits at `at`: the longest that holds, made of whole groups.
pub(super) fn find(text: &Text<'_>, at: usize) -> Option<Attempt> {
    let is_fraction = text.before(at) == Some(b'.') && at.checked_sub(1).is_some_and(|dot| is_digit_before(text, dot));
    if text.is_after_word(at) || is_fraction {
        return None;
    }
    Some(Attempt { start: at, end: end(text, at) })
}

fn is_digit_before(text: &Text<'_>, at: usize) -> bool {
    text.before(at).is_some_and(|byte| byte.is_ascii_digit())
}

fn end(text: &Text<'_>, at: usize) -> Option<usize> {
    let mut digits = Vec::new();
    let mut end = None;
    for group in text.groups(at) {
        if matches!(group.sep, Some(Sep::Dot | Sep::Slash)) || digits.len() + group.len() > MOST {
            break;
        }
        digits.extend((group.start..group.end).filter_map(|place| text.byte(place)).map(|byte| byte - b'0'));
        let lengths = lengths(&digits)?;
        let holds = lengths.clone().any(|length| length == digits.len()) && luhn(&digits);
        if holds && !text.is_word(group.end) && !text.is_fraction(group.end) {
            end = Some(group.end);
        }
        if group.len() < GROUP || lengths.max() <= Some(digits.len()) {
            break;
        }
    }
    end
}

/// How many digits a number has that begins with `digits`; `None` where none does.
fn lengths(digits: &[u8]) -> Option<impl Iterator<Item = usize> + Clone + '_> {
    let known = ISSUERS.iter().filter(|(from, to, _)| {
        let prefix = digits.get(..from.ilog10() as usize + 1).unwrap_or_default();
        let prefix = prefix.iter().fold(0, |number, &digit| number * 10 + u32::from(digit));
        (*from..=*to).contains(&prefix)
    });
    let mut lengths = known.flat_map(|(_, _, lengths)| lengths.iter().copied()).peekable();
    lengths.peek()?;
    Some(lengths)
}

/// ISO/IEC 7812-1, annex B.
fn luhn(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum = digits.iter().rev().enumerate();
    let sum: u32 = sum.map(|(place, &digit)| u32::from(if place % 2 == 1 { doubled(digit) } else { digit })).sum();
    sum.is_multiple_of(10)
}
