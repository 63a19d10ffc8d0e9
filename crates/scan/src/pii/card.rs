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
    let is_fraction = text.joined(at) == Some(Sep::Dot);
    if text.is_after_word(at) || is_fraction {
        return None;
    }
    Some(Attempt { start: at, end: end(text, at) })
}

fn end(text: &Text<'_>, at: usize) -> Option<usize> {
    let mut digits = Vec::new();
    let (mut lengths, mut end) = (0, None);
    for group in text.groups(at) {
        if matches!(group.sep, Some(Sep::Dot | Sep::Slash)) || digits.len() + group.len() > MOST {
            break;
        }
        if digits.is_empty() {
            lengths = Some(lengths_of(text, at, group.len())).filter(|&lengths| lengths != 0)?;
            digits.reserve(MOST);
        }
        digits.extend((group.start..group.end).filter_map(|place| text.byte(place)).map(|byte| byte - b'0'));
        let holds = lengths & (1 << digits.len()) != 0 && luhn(&digits);
        if holds && !text.is_word(group.end) && !text.is_fraction(group.end) {
            end = Some(group.end);
        }
        if group.len() < GROUP || lengths >> digits.len() <= 1 {
            break;
        }
    }
    end
}

/// How many digits a number may have that begins with the `len` digits at `at`: a bit for each length.
fn lengths_of(text: &Text<'_>, at: usize, len: usize) -> u32 {
    if len < GROUP {
        return 0; // too few to be told by, and for a group that others follow
    }
    let first = (at..at + 4).filter_map(|place| text.byte(place));
    let first = first.fold(0, |number, byte| number * 10 + u32::from(byte - b'0'));
    let known = ISSUERS.iter().filter(|(from, to, _)| {
        let prefix = first / 10_u32.pow(3 - from.ilog10());
        (*from..=*to).contains(&prefix)
    });
    known.flat_map(|(_, _, lengths)| lengths.iter()).fold(0, |bits, length| bits | 1 << length)
}

/// ISO/IEC 7812-1, annex B.
fn luhn(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum = digits.iter().rev().enumerate();
    let sum: u32 = sum.map(|(place, &digit)| u32::from(if place % 2 == 1 { doubled(digit) } else { digit })).sum();
    sum.is_multiple_of(10)
}
