//! IP addresses of hosts.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::search::Attempt;
use super::text::Text;
use super::words;

/// Characters of the longest IPv6 address.
const V6: usize = 45;
/// What stands before four numbers that are no address.
const VERSIONS: [&str; 5] = ["version", "versions", "ver", "release", "build"];

/// The IPv4 address that begins with the digits at `at`.
pub(super) fn find_v4(text: &Text<'_>, at: usize) -> Option<Attempt> {
    // `1.2.3.4` has no number before it, and `name-1.2.3.4` is a version.
    let is_part = match text.apart(at) {
        [.., before, b'.'] => before.is_ascii_alphanumeric(),
        [.., before, b'-'] => before.is_ascii_alphabetic(),
        _ => text.is_after_word(at),
    };
    (!is_part).then(|| Attempt { start: at, end: v4_end(text, at) })
}

fn v4_end(text: &Text<'_>, at: usize) -> Option<usize> {
    let mut octets = [0; 4];
    let mut end = at;
    for (place, octet) in octets.iter_mut().enumerate() {
        let start = if place == 0 { at } else { end + 1 };
        if place > 0 && text.byte(end) != Some(b'.') {
            return None;
        }
        end = text.digits(start);
        let digits = text.head(end).get(start..)?;
        *octet = digits.parse::<u8>().ok().filter(|_| digits == "0" || !digits.starts_with('0'))?;
    }
    let is_part = text.is_word(end) || text.is_fraction(end);
    (!is_part && is_host_v4(Ipv4Addr::from(octets)) && !words::stand_before(text, at, &VERSIONS)).then_some(end)
}

/// Whether it is one host's: not this network, not this host, not reserved, as masks are.
fn is_host_v4(address: Ipv4Addr) -> bool {
    !matches!(address.octets(), [0 | 127 | 240.., ..])
}

/// The IPv6 address whose first colon is at `at`.
pub(super) fn find_v6(text: &Text<'_>, at: usize) -> Option<Attempt> {
    let start = v6_start(text, at);
    (!text.is_after_word(start)).then(|| Attempt { start, end: v6_end(text, start, at) })
}

/// Where the group begins that ends at `at`.
pub(super) fn v6_start(text: &Text<'_>, at: usize) -> usize {
    let group = text.apart(at).iter().rev().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
    at - group
}

fn v6_end(text: &Text<'_>, start: usize, colon: usize) -> Option<usize> {
    // All addresses of hosts begin with four digits but those of hosts that have one of IPv4, `::ffff:1.2.3.4`.
    if colon - start < 4 && (colon > start || text.byte(colon + 1) != Some(b':')) {
        return None;
    }
    let is_part = |place: usize| text.byte(place).is_some_and(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
    let length = (0..V6 + 2).take_while(|ahead| is_part(start + ahead)).count();
    // What goes on so long is no address as a whole; one may end at its first dot.
    let is_long = length > V6 + 1;
    let run = text.head(start + length).get(start..)?;
    let is_cut = text.is_word(start + length);
    let dot = run.find('.').and_then(|dot| run.get(..dot));
    // What ends a sentence or names what follows is none of it.
    let plain = |run: &'_ str| run.trim_end_matches('.').len();
    let stop = |run: &'_ str| if run.ends_with("::") { run.len() } else { run.trim_end_matches(':').len() };
    let whole = run.get(..plain(run)).map(|run| run.get(..stop(run)).unwrap_or_default());
    let found = [whole.filter(|whole| !is_long && (!is_cut || whole.len() < run.len())), dot].into_iter().flatten();
    let mut hosts = found.filter(|run| run.parse().is_ok_and(is_host_v6) && !is_words(run));
    hosts.next().map(|run| start + run.len())
}

/// Whether it is one host's: global, unique local or link-local (RFC 4291, RFC 4193), or one of IPv4.
fn is_host_v6(address: Ipv6Addr) -> bool {
    match (address.to_ipv4_mapped(), address.segments()) {
        (Some(mapped), _) => is_host_v4(mapped),
        (None, [first, ..]) => matches!(first, 0x2000..=0x3fff | 0xfc00..=0xfdff | 0xfe80..=0xfebf),
    }
}

/// Whether it is a path of words that are made of hexadecimal digits: `fade::face`.
fn is_words(run: &str) -> bool {
    !run.bytes().any(|byte| byte.is_ascii_digit())
}
