//! `cargo xtask bench handlers` runs this with the names of measurements and reads one line of JSON for each:
//! `{"name":"prose_1m","value":12.3}`. Times are medians in microseconds for each MiB.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a bench answers its caller or stops")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

const PROSE: &str = "The gateway stands between a client and a model. It reads each request, asks every hook that \
    wants to see it, and sends on what they let through; answers take the same way back. Most of them hold nothing \
    unusual, so the usual case has to be cheap: no copies, no waiting, no surprises (not even small ones).\n";
const CODE: &str = include_str!("../src/find.rs");
const MIB: usize = 1 << 20;

fn main() {
    for name in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        println!(r#"{{"name":"{name}","value":{:.2}}}"#, measure(&name));
    }
}

fn measure(name: &str) -> f64 {
    let scan = |text: &str| assert!(black_box(gatehook_scan::find(black_box(text))).is_empty(), "it is no clean text");
    let (prose, code) = (|len| fill(PROSE, len), |len| fill(CODE, len));
    match name {
        "prose_64k" => median(&prose(MIB / 16), scan),
        "prose_1m" => median(&prose(MIB), scan),
        "prose_10m" => median(&prose(10 * MIB), scan),
        "code_1m" => median(&code(MIB), scan),
        "prose_1m_literals" => median(&prose(MIB), literals()),
        "code_1m_literals" => median(&code(MIB), literals()),
        other => panic!("no measurement `{other}`"),
    }
}

/// One pass over a text with the literals of all rules at once.
fn literals() -> impl Fn(&str) {
    let literals = gatehook_scan::rules().flat_map(|rule| rule.literals());
    // `^` and `$` stand for the ends of a name.
    let literals: Vec<&str> = literals.map(|literal| literal.trim_matches(['^', '$'])).collect();
    let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(literals).expect("an automaton");
    move |text| {
        black_box(automaton.find_iter(black_box(text)).count());
    }
}

/// `piece` repeated to `len` bytes.
fn fill(piece: &str, len: usize) -> String {
    let mut text = piece.repeat(len / piece.len() + 1);
    text.truncate(text.floor_char_boundary(len));
    text
}

fn median(text: &str, scan: impl Fn(&str)) -> f64 {
    scan(text);
    let (mut times, end) = (vec![], Instant::now() + Duration::from_millis(300));
    while times.len() < 5 || Instant::now() < end {
        let start = Instant::now();
        scan(text);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let middle = times.get(times.len() / 2).expect("something was measured");
    middle.as_secs_f64() * 1e6 * MIB as f64 / text.len() as f64
}
