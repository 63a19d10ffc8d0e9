//! International bank account numbers.

use super::search::Attempt;
use super::text::{Sep, Text};

/// The countries and how many characters their numbers have: the registry of ISO 13616
/// (<https://www.swift.com/standards/data-standards/iban-international-bank-account-number>), and those countries that
/// use such numbers without being in it.
#[rustfmt::skip]
const COUNTRIES: &[(&[u8; 2], usize)] = &[
    (b"AD", 24), (b"AE", 23), (b"AL", 28), (b"AO", 25), (b"AT", 20), (b"AZ", 28), (b"BA", 20), (b"BE", 16),
    (b"BF", 28), (b"BG", 22), (b"BH", 22), (b"BI", 27), (b"BJ", 28), (b"BR", 29), (b"BY", 28), (b"CF", 27),
    (b"CG", 27), (b"CH", 21), (b"CI", 28), (b"CM", 27), (b"CR", 22), (b"CV", 25), (b"CY", 28), (b"CZ", 24),
    (b"DE", 22), (b"DJ", 27), (b"DK", 18), (b"DO", 28), (b"DZ", 26), (b"EE", 20), (b"EG", 29), (b"ES", 24),
    (b"FI", 18), (b"FK", 18), (b"FO", 18), (b"FR", 27), (b"GA", 27), (b"GB", 22), (b"GE", 22), (b"GI", 23),
    (b"GL", 18), (b"GQ", 27), (b"GR", 27), (b"GT", 28), (b"GW", 25), (b"HN", 28), (b"HR", 21), (b"HU", 28),
    (b"IE", 22), (b"IL", 23), (b"IQ", 23), (b"IR", 26), (b"IS", 26), (b"IT", 27), (b"JO", 30), (b"KM", 27),
    (b"KW", 30), (b"KZ", 20), (b"LB", 28), (b"LC", 32), (b"LI", 21), (b"LT", 20), (b"LU", 20), (b"LV", 21),
    (b"LY", 25), (b"MA", 28), (b"MC", 27), (b"MD", 24), (b"ME", 22), (b"MG", 27), (b"MK", 19), (b"ML", 28),
    (b"MN", 20), (b"MR", 27), (b"MT", 31), (b"MU", 30), (b"MZ", 25), (b"NE", 28), (b"NI", 28), (b"NL", 18),
    (b"NO", 15), (b"OM", 23), (b"PK", 24), (b"PL", 28), (b"PS", 29), (b"PT", 25), (b"QA", 29), (b"RO", 24),
    (b"RS", 22), (b"RU", 33), (b"SA", 24), (b"SC", 31), (b"SD", 18), (b"SE", 24), (b"SI", 19), (b"SK", 24),
    (b"SM", 27), (b"SN", 28), (b"SO", 23), (b"ST", 25), (b"SV", 28), (b"TD", 27), (b"TG", 28), (b"TL", 23),
    (b"TN", 24), (b"TR", 26), (b"UA", 29), (b"VA", 22), (b"VG", 24), (b"XK", 20), (b"YE", 30),
];

/// Characters of the longest number.
const MOST: usize = 34;
/// Digits behind the country and the check digits, at least; the sparsest have seven.
const DIGITS: usize = 6;

/// The number whose check digits begin at `at`.
pub(super) fn find(text: &Text<'_>, at: usize) -> Option<Attempt> {
    let start = at.checked_sub(2)?;
    let country = text.head(at).get(start..)?.to_ascii_uppercase();
    let (_, length) = COUNTRIES.iter().find(|(known, _)| *known == country.as_bytes())?;
    if text.is_after_word(start) {
        return None;
    }
    Some(Attempt { start, end: end(text, start, *length) })
}

fn end(text: &Text<'_>, start: usize, length: usize) -> Option<usize> {
    let (mut chars, mut at, mut group) = (Vec::with_capacity(MOST), start, 0);
    while chars.len() < length {
        if chars.len() == 4 && !chars.iter().skip(2).all(u8::is_ascii_digit) {
            return None;
        }
        match text.byte(at).filter(u8::is_ascii_alphanumeric) {
            Some(char) => {
                chars.push(char);
                (at, group) = (at + 1, group + 1);
            }
            // A group of one character is a word of a sentence.
            None if group < 2 || chars.len() < 4 => return None,
            None => match text.sep(at)? {
                (Sep::Space | Sep::Dash, end) => (at, group) = (end, 0),
                _ => return None,
            },
        }
    }
    let digits = chars.iter().skip(4).filter(|char| char.is_ascii_digit()).count();
    (digits >= DIGITS && !text.is_word(at) && checks(&chars)).then_some(at)
}

/// ISO 7064, MOD 97-10.
fn checks(chars: &[u8]) -> bool {
    let (head, rest) = chars.split_at(chars.len().min(4));
    let remainder = rest.iter().chain(head).fold(0_u32, |remainder, &char| match char {
        b'0'..=b'9' => (remainder * 10 + u32::from(char - b'0')) % 97,
        _ => (remainder * 100 + u32::from(char.to_ascii_uppercase() - b'A') + 10) % 97,
    });
    remainder == 1
}

/// Where the letters of a country begin that may stand before `end`.
pub(super) fn begun(text: &Text<'_>, end: usize) -> usize {
    end - text.head(end).bytes().rev().take(2).take_while(u8::is_ascii_alphabetic).count()
}
