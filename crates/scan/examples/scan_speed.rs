//! Measures the scan of typical texts: `cargo run --release -p gatehook-scan --example scan_speed [file...]`.
//!
//! Prints, for each text, the median of many scans; then what a push costs of texts that come in pieces; with files given,
//! also each file and what was found in it.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatehook_scan::{Carry, Growing, Patterns};

const PROSE: &str = "The gateway stands between a client and a model. It reads each request, asks every hook that \
    wants to see it, and sends on what they let through; answers take the same way back. Most of them hold nothing \
    unusual, so the usual case has to be cheap: no copies, no waiting, no surprises (not even small ones).\n";

const LINK: &str = "See https://example.org/docs/hooks for an introduction, or write to someone@example.org.\n";

const CODE: &str = include_str!("../src/find.rs");

fn main() {
    let start = Instant::now();
    black_box(gatehook_scan::find("a first scan builds the prefilter: 0123456789abcdef"));
    println!("{:<28}{:>12.1?}", "first use", start.elapsed());

    let key = concat!("AKIA", "Z7QXW3PLM2NB5VCD");
    let with_key = |len: usize| format!("{} {key} {}", fill(PROSE, len / 2), fill(PROSE, len / 2));
    let linked = [PROSE, LINK].concat();
    let hostile = |piece: &str| fill(piece, 10 << 20);
    for (name, text) in [
        ("prose, 4 KiB", fill(PROSE, 4 << 10)),
        ("prose with links, 4 KiB", fill(&linked, 4 << 10)),
        ("source code, 4 KiB", fill(CODE, 4 << 10)),
        ("prose, 16 KiB", fill(PROSE, 16 << 10)),
        ("prose and a key, 16 KiB", with_key(16 << 10)),
        ("prose, 1 MiB", fill(PROSE, 1 << 20)),
        ("source code, 1 MiB", fill(CODE, 1 << 20)),
        ("base64, 1 MiB", base64(1 << 20)),
        ("prose, 10 MiB", fill(PROSE, 10 << 20)),
        ("10 MiB of A", hostile("A")),
        ("10 MiB of -----BEGIN", hostile("-----BEGIN")),
        ("10 MiB of ://a:", hostile("://a:")),
        ("10 MiB of eyJhbGci-", hostile("eyJhbGci-")),
        ("10 MiB of sk-", hostile("sk-")),
        ("10 MiB of password:", hostile("password:")),
        ("10 MiB of ghp_ keys", hostile(concat!("ghp_", "Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0Aa1Ee "))),
    ] {
        println!("{name:<28}{:>12.2?}", median(&text));
    }
    pushes();
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        println!("{path} ({} bytes) {:.2?}", text.len(), median(&text));
        for finding in gatehook_scan::find(&text) {
            println!("    {}: {}", finding.rule, text.get(finding.range).unwrap_or_default());
        }
    }
}

/// What one push of a growing text costs, on average over a whole text, and how much of it is held at most.
fn pushes() {
    let key =
        format!("{}{}\n", concat!("-----BEGIN ", "PRIVATE KEY-----\n"), "MIIEvQIBADANBgkqhkiG9w0BAQE/\n".repeat(100));
    let linked = [PROSE, LINK].concat();
    let patterns =
        Patterns::new(&["(?i)internal use only", r"\bfalcon\b", r"\d{3}-\d{2}-\d{4}", r"(?i)secret\w*project"]);
    println!("\n{:<28}{:>12}{:>12}{:>12}{:>12}", "a push", "4 bytes", "20 bytes", "held", "patterns");
    for (name, text) in [
        ("prose", fill(PROSE, 16 << 10)),
        ("prose with links", fill(&linked, 16 << 10)),
        ("source code", fill(CODE, 16 << 10)),
        ("base64", base64(16 << 10)),
        ("a private key", key),
        ("sk-proj-", fill("sk-proj-", 16 << 10)),
    ] {
        let (short, held) = push_cost(&text, 4, carry);
        let (long, _) = push_cost(&text, 20, carry);
        let patterns = patterns.as_ref().map_or(Duration::ZERO, |patterns| {
            push_cost(&text, 20, || {
                let mut growing = Growing::new(Arc::clone(patterns));
                move |more: &str| growing.push(more, false).upto
            })
            .0
        });
        println!("{name:<28}{short:>12.0?}{long:>12.0?}{held:>12}{patterns:>12.0?}");
    }
}

fn carry() -> impl FnMut(&str) -> usize {
    let mut carry = Carry::new();
    move |more| carry.push(more, false).upto
}

/// The median over some runs of what a push of `len` bytes costs, and the most that was held.
fn push_cost<P: FnMut(&str) -> usize>(text: &str, len: usize, make: impl Fn() -> P) -> (Duration, usize) {
    let pieces: Vec<&str> = text.as_bytes().chunks(len).filter_map(|piece| std::str::from_utf8(piece).ok()).collect();
    let (mut times, mut held) = (Vec::new(), 0);
    let begin = Instant::now();
    while times.is_empty() || begin.elapsed() < Duration::from_millis(300) {
        let mut push = make();
        let (start, mut came) = (Instant::now(), 0);
        for piece in &pieces {
            came += piece.len();
            held = held.max(came - black_box(push(black_box(piece))));
        }
        times.push(start.elapsed() / u32::try_from(pieces.len()).unwrap_or(1));
    }
    times.sort_unstable();
    (times.get(times.len() / 2).copied().unwrap_or_default(), held)
}

/// `piece` repeated to `len` bytes.
fn fill(piece: &str, len: usize) -> String {
    let mut text = piece.repeat(len / piece.len() + 1);
    text.truncate(text.floor_char_boundary(len));
    text
}

/// `len` base64 digits of no meaning.
fn base64(len: usize) -> String {
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 26) as usize
    };
    (0..len).filter_map(|_| digits.get(next())).collect()
}

/// The median of scans over about 300 ms, at least one.
fn median(text: &str) -> Duration {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        black_box(gatehook_scan::redact(black_box(text)));
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
