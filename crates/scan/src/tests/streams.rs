//! A text that comes in pieces leaves as if it had been redacted as a whole.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::examples::{Example, examples, fill};
use super::properties::text;
use crate::{CONTEXT, Carry, Finding, HOLD_LIMIT, MARKER, Settled, context, find, redact};

/// What happens to a text on its way through.
struct Gate<'t> {
    whole: &'t str,
    carry: Carry,
    /// What has come, and what of it is settled.
    came: usize,
    upto: usize,
    left: String,
    /// The most that was held behind a push.
    held: usize,
}

impl<'t> Gate<'t> {
    fn new(whole: &'t str) -> Self {
        Self { whole, carry: Carry::new(), came: 0, upto: 0, left: String::new(), held: 0 }
    }

    fn push(&mut self, len: usize, ended: bool) -> Settled {
        let piece = &self.whole[self.came..self.came + len];
        self.came += len;
        let settled = self.carry.push(piece, ended);
        assert!(self.upto <= settled.upto && settled.upto <= self.came, "{settled:?} in {:?}", self.whole);
        let segment = &self.whole[self.upto..settled.upto];
        self.held = self.held.max(self.came - settled.upto);
        if segment.is_empty() {
            return settled;
        }
        let context = context(&self.left);
        let shown = [context, segment].concat();
        let redacted = redact(&shown);
        let Some(redacted) = redacted.strip_prefix(context) else {
            panic!("{shown:?} becomes {redacted:?}, where {context:?} has left");
        };
        assert!(!settled.clean || redacted == segment, "{segment:?} is called clean in {:?}", self.whole);
        self.left.push_str(redacted);
        self.upto = settled.upto;
        settled
    }
}

/// What leaves of `text`, cut at `cuts`, and the most that was held.
fn through(text: &str, cuts: impl IntoIterator<Item = usize>) -> (String, usize) {
    let mut gate = Gate::new(text);
    for cut in cuts {
        gate.push(cut - gate.came, false);
    }
    gate.push(text.len() - gate.came, true);
    (gate.left, gate.held)
}

/// All character boundaries of `text`.
fn boundaries(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(at, _)| at)
}

const AROUND: [(&str, &str); 7] = [
    ("", ""),
    ("before ", " behind"),
    ("日本語のé", "è日本語"),
    ("é\n", "\né"),
    ("{\"text\": \"line\\n", "\\n\", \"next\": 1}"),
    ("?q=%3D", "&x=1"),
    ("it is `", "`, as said. "),
];

#[test]
fn a_secret_split_anywhere_leaves_as_from_the_whole() {
    for (example, (before, behind)) in examples().iter().zip(AROUND.iter().cycle()) {
        let text = format!("{before}{}{behind}", example.hit);
        let whole = redact(&text);
        for cut in boundaries(&text) {
            let (left, _) = through(&text, [cut]);
            assert_eq!(left, whole, "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn a_text_that_comes_character_by_character_leaves_as_from_the_whole() {
    for (example, (before, behind)) in examples().iter().flat_map(|example| AROUND.map(|around| (example, around))) {
        let text = format!("{before}{}{behind}", example.hit);
        let (left, _) = through(&text, boundaries(&text));
        assert_eq!(left, redact(&text), "{text:?}");
    }
    for Example { miss, .. } in examples() {
        let (left, _) = through(&miss, boundaries(&miss));
        assert_eq!(left, redact(&miss), "{miss:?}");
    }
}

#[test]
fn nothing_of_a_secret_is_in_what_has_left_before_it_is_known() {
    for example in examples() {
        let text = format!("before {}", example.hit);
        let secrets = find(&text);
        let mut carry = Carry::new();
        for char in text.chars() {
            let settled = carry.push(char.encode_utf8(&mut [0; 4]), false);
            for secret in &secrets {
                let inside = secret.range.start < settled.upto && settled.upto <= secret.range.end;
                assert!(!inside, "{settled:?} is inside of {secret:?} of {text:?}");
            }
        }
    }
}

/// What follows a text that ends at `cut`, and what of it is held.
fn held_at(text: &str, cut: usize) -> (Carry, &str) {
    let mut carry = Carry::new();
    let settled = carry.push(&text[..cut], false);
    (carry, &text[settled.upto..cut])
}

#[test]
fn no_secret_begins_with_what_none_may_begin_with() {
    for (example, end) in examples().iter().flat_map(|example| ["", ".", "!", ")."].map(|end| (example, end))) {
        let text = format!("It is fine{end} {}{end}", example.hit);
        for secret in find(&text) {
            for cut in secret.range.start + 1..secret.range.end {
                let (carry, held) = held_at(&text, cut);
                assert!(held.is_empty() || carry.may_begin(held), "{held:?} of {:?}", &text[secret.range.clone()]);
            }
        }
        let (carry, held) = held_at(&text, "It is fine".len() + end.len());
        assert!(held.is_empty() || carry.may_begin(held) == end.is_empty(), "{held:?}");
    }
}

#[test]
fn a_secret_has_begun_but_for_letters_before_its_prefix() {
    for example in examples() {
        let text = format!("It is {}", example.hit);
        for secret in find(&text) {
            for cut in secret.range.start + 1..secret.range.end {
                let (carry, held) = held_at(&text, cut);
                let begun = &text[secret.range.start..cut];
                let is_word = begun.chars().all(|char| char.is_ascii_alphabetic());
                assert!(held.is_empty() || carry.has_begun(held) || is_word, "{begun:?} of {:?}", example.hit);
            }
        }
    }
}

#[test]
fn what_any_text_may_end_in_is_no_beginning() {
    for text in
        ["It is fine.", "Well-known, so", "That makes 42.", "(see 2024)", "a pattern?", "the key: yes", "so it is"]
    {
        let (carry, held) = held_at(text, text.len());
        assert!(!carry.has_begun(held), "{text:?}");
    }
    for text in ["It is AK", "AKI", "xox", "use sk-", "That makes 42", "my password: yes", "the golden_1"] {
        let (carry, held) = held_at(text, text.len());
        assert!(carry.has_begun(held) && carry.may_begin(held), "{text:?}");
    }
}

fn cut_text() -> impl Strategy<Value = (String, Vec<usize>)> {
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..12);
    (text(), cuts).prop_map(|(text, cuts)| {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.sort_unstable();
        (text, cuts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn however_a_text_is_cut_it_leaves_as_from_the_whole((text, cuts) in cut_text()) {
        prop_assert_eq!(through(&text, cuts.iter().copied()).0, redact(&text));
        prop_assert_eq!(through(&text, boundaries(&text)).0, redact(&text));
    }
}

#[test]
fn a_word_that_an_anchor_cuts_short_is_no_token_yet() {
    let text = fill("PMAK-{x24}-{x34}Pwd: `s3cret!word`");
    for cut in boundaries(&text) {
        assert_eq!(through(&text, [cut]).0, redact(&text), "{text:?} cut at {cut}");
    }
    assert_eq!(redact(&text), fill("PMAK-{x24}-{x34}Pwd: `s3cret!word`").replace("s3cret!word", MARKER));
}

#[test]
fn what_has_left_gives_the_next_segment_its_name_and_shows_nothing_that_was_not_there() {
    let text = fill("1sk-proj-{a300}sec-c-{a60}https://example.org/Authorization: Bearer {a40}\n");
    assert_eq!(through(&text, boundaries(&text)).0, redact(&text));
    assert!(redact(&text).ends_with("Bearer [REDACTED]\n"));
    for at in boundaries(&text).filter(|&at| at <= text.len() - 41) {
        let context = context(&text[..at]);
        assert!(context.len() <= CONTEXT && context.len() >= at.min(96), "{at}: {context:?}");
        assert_eq!(redact(context), context, "at {at}");
    }
}

#[test]
fn a_context_of_any_length_hides_no_secret() {
    for example in examples() {
        let left = format!("{}api_key{} ", fill("{a9}-{a99} "), fill(" {a99}"));
        let whole = format!("{left}{}", example.hit);
        for Finding { range, .. } in find(&whole).iter().filter(|found| found.range.start >= left.len()) {
            for length in (96..left.len()).step_by(7) {
                let from = left.len() - length;
                let found = find(&whole[from..]);
                let covers =
                    |found: &Finding| found.range.start + from <= range.start && range.end <= found.range.end + from;
                assert!(found.iter().any(covers), "{:?} misses {range:?} of {whole:?}", &whole[from..]);
            }
        }
    }
}

#[test]
fn of_prose_only_the_last_word_is_held() {
    const PROSE: &str = "The gateway stands between a client and a model: it reads each request, asks every hook that \
        wants to see it, and sends on what they let through. Passwords, tokens and an API key are nothing unusual \
        there (\"the password is wrong\" is one); neither is the token count, or a secretary. Most hold nothing \
        unusual, so the usual case has to be cheap - no copies, no waiting, no surprises; not even small ones! \
        Größe, naïveté, 日本語のテキスト、そして“quotes”.\n\n1. First: do it.\n2. Then, do it again...\n";
    let mut carry = Carry::new();
    let mut came = 0;
    for char in PROSE.chars() {
        came += char.len_utf8();
        let settled = carry.push(char.encode_utf8(&mut [0; 4]), false);
        let word = PROSE[..came].rfind([' ', '\n']).map_or(0, |at| at + 1);
        let word = if word == came { PROSE[..word - 1].rfind([' ', '\n']).map_or(0, |at| at + 1) } else { word };
        assert!(settled.clean && settled.upto >= word, "{:?} is held", &PROSE[settled.upto..came]);
    }
}

/// How much of a text is held at most, come by characters.
fn most_held(text: &str) -> usize {
    let (left, held) = through(text, boundaries(text));
    assert_eq!(left, redact(text));
    held
}

#[test]
fn what_no_rule_fits_is_not_held_without_end() {
    let digits = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kg";
    let texts = [
        ("base64", digits.repeat(20)),
        ("a URL", format!("https://example.org/{}", "some-long-path/with%20parts/".repeat(40))),
        ("a path", "/usr/share/doc/a_long_name.of-something/".repeat(40)),
        ("hexadecimal digits", "0123456789abcdef".repeat(100)),
        ("a ruler", "-".repeat(1000)),
        ("dots", ".".repeat(1000)),
        ("JSON", r#"{"id":"3f0f4c9e-0000-4000-8000-000000000001","text":"nothing\nto see","n":[1,2,3]},"#.repeat(10)),
        (
            "a log",
            "2026-11-21T16:29:26.123Z INFO server::http request_id=42 path=/v1/chat/completions status=200\n".repeat(5),
        ),
        ("code", include_str!("../find.rs").to_owned()),
    ];
    for (name, text) in texts {
        let held = most_held(&text);
        println!("{name}: {held}");
        assert!(held <= 100, "{held} bytes of {name} are held");
    }
}

#[test]
fn a_private_key_is_held_from_its_first_byte_until_it_ends() {
    let line = format!("{}\n", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj");
    let begin = concat!("-----BEGIN ", "PRIVATE KEY-----\n");
    let text = format!("key:\n{begin}{}-----END PRIVATE KEY-----\nand so on, ", line.repeat(3));
    let mut carry = Carry::new();
    for (at, char) in text.char_indices() {
        let settled = carry.push(char.encode_utf8(&mut [0; 4]), false);
        let ends = text.rfind("-----").unwrap() + 5;
        assert!(at >= ends || settled.upto <= 5, "{settled:?} at {at}");
    }
    for cut in boundaries(&text).skip(5 + begin.len()) {
        let (left, _) = through(&text[..cut], [5, 9, cut]);
        assert!(!left.contains("MII"), "{left:?}");
        if cut > 5 + begin.len() {
            assert!(left.starts_with(&format!("key:\n{MARKER}")), "{left:?}");
        }
    }
}

#[test]
fn what_is_held_is_bounded() {
    let mut carry = Carry::new();
    carry.push(concat!("sk-", "proj-"), false);
    let line = "a".repeat(64);
    for _ in 0..HOLD_LIMIT / 64 - 1 {
        assert_eq!(carry.push(&line, false), Settled { upto: 0, clean: true, too_long: false });
    }
    carry.push(&line, false);
    assert!(carry.push(&line, false).too_long);
    assert_eq!(carry.push("x", true), Settled { upto: 0, clean: false, too_long: true });
}

#[test]
fn the_time_is_linear_in_hostile_texts() {
    for piece in ["sk-proj-", "-----BEGIN", "://a:", "eyJhbGci-", "password:", "pat", "MT", "password = ", "a/b+", ":"]
    {
        for push in [20, usize::MAX] {
            let time = |len: usize| {
                let text = piece.repeat(len / piece.len());
                let begin = Instant::now();
                let mut carry = Carry::new();
                for piece in text.as_bytes().chunks(push) {
                    carry.push(std::str::from_utf8(piece).unwrap(), false);
                }
                begin.elapsed().max(Duration::from_millis(1))
            };
            // The machine may have other things to do now and then, but not every time.
            let linear = (0..20).any(|_| time(32 << 10) < time(4 << 10) * 24);
            assert!(linear, "8 times {piece:?} cost more than 24 times as much");
        }
    }
}

#[test]
fn what_follows_an_end_is_a_text_of_its_own() {
    let mut carry = Carry::new();
    assert_eq!(carry.push("api_key = ", true), Settled { upto: 10, clean: true, too_long: false });
    let settled = carry.push("Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A\n", true);
    assert_eq!(settled, Settled { upto: 43, clean: false, too_long: false });
}
