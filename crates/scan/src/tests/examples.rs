//! `rules/examples.txt`: each rule recognises its examples and not the near misses.

use std::collections::HashSet;

use crate::{MARKER, find, redact, rules};

/// One line of the file, with its templates filled.
pub(super) struct Example {
    pub(super) rule: &'static str,
    pub(super) hit: String,
    pub(super) miss: String,
}

pub(super) fn examples() -> Vec<Example> {
    let lines = include_str!("../rules/examples.txt").lines();
    let rows = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let mut columns = line.split(" | ");
        let mut next = || columns.next().unwrap_or_else(|| panic!("three columns in {line}"));
        Example { rule: next(), hit: fill(next()), miss: fill(next()) }
    })
    .collect()
}

/// Replaces `{a36}` by 36 characters of class `a`; every third is a digit where the class has any.
pub(super) fn fill(template: &str) -> String {
    let template = template.replace(r"\\", "\u{1}").replace(r"\n", "\n").replace('\u{1}', r"\");
    let mut out = String::new();
    let mut rest = template.as_str();
    let mut state = template.len() as u32;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open + 1..];
        let inside = rest.split_once('}').map(|(inside, behind)| (class_and_count(inside), behind));
        let Some((Some((class, count)), behind)) = inside else {
            out.push('{');
            continue;
        };
        for at in 0..count {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let digits = &class[class.find(|c: char| c.is_ascii_digit()).unwrap_or(0)..];
            let from = if at % 3 == 1 { digits } else { class };
            out.push(char::from(from.as_bytes()[(state >> 16) as usize % from.len()]));
        }
        rest = behind;
    }
    out + rest
}

fn class_and_count(inside: &str) -> Option<(&'static str, usize)> {
    let class = match inside.get(..1)? {
        "a" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "l" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "u" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "x" => "abcdef0123456789",
        "d" => "0123456789",
        "q" => "QPZRYXGFTVDWSJNKHCEMUAL02345678",
        _ => return None,
    };
    Some((class, inside[1..].parse().ok()?))
}

fn rules_found(text: &str) -> Vec<&'static str> {
    find(text).into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn every_rule_has_an_example() {
    let known: HashSet<_> = examples().iter().map(|example| example.rule).collect();
    let missing: Vec<_> = rules().map(|rule| rule.id()).filter(|id| !known.contains(id)).collect();
    assert!(missing.is_empty(), "no example for {missing:?}");
}

#[test]
fn every_example_is_found_by_its_rule() {
    for Example { rule, hit, .. } in examples() {
        for text in [hit.clone(), format!("before {hit} behind"), format!("é\n{hit}\né")] {
            assert!(rules_found(&text).contains(&rule), "{rule} misses {text:?}: {:?}", find(&text));
        }
    }
}

#[test]
fn no_near_miss_is_found_by_its_rule() {
    for Example { rule, miss, .. } in examples() {
        for text in [miss.clone(), format!("before {miss} behind")] {
            assert!(!rules_found(&text).contains(&rule), "{rule} finds {text:?}: {:?}", find(&text));
        }
    }
}

#[test]
fn nothing_of_a_secret_is_left() {
    assert_eq!(redact(&fill("id AKIA{u16}, key")), "id [REDACTED], key");
    assert_eq!(redact(&fill(r#"{"api_key": "{a32}"}"#)), r#"{"api_key": "[REDACTED]"}"#);
    assert_eq!(redact(&fill("postgres://app:{a12}@db/x")), "postgres://app:[REDACTED]@db/x");
    assert_eq!(redact(&fill("Authorization: Bearer {a40}==\n")), "Authorization: Bearer [REDACTED]\n");
    assert_eq!(redact("password = \"hünter2!\" # mine"), "password = \"[REDACTED]\" # mine");
    assert_eq!(
        redact(&fill("-----BEGIN PRIVATE KEY-----\n{a64}\n{a9}=\n-----END PRIVATE KEY-----\n.")),
        "[REDACTED]\n."
    );
}

#[test]
fn a_private_key_that_the_text_ends_in_is_found_from_its_first_byte() {
    for text in ["-----BEGIN PRIVATE KEY-----\nM", "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n\""] {
        assert_eq!(redact(text), MARKER, "{text}");
    }
    for text in ["-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY----- is"] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn nothing_of_a_word_is_left_that_a_private_key_runs_into() {
    assert_eq!(redact(&fill("-----BEGIN PRIVATE KEY-----\n{a64}\n{a9}_{a4}.")), "[REDACTED].");
}

#[test]
fn an_option_behind_a_marker_is_not_the_whole_name() {
    let left = redact(&fill("AKIA{u16}--token {a32}")).into_owned();
    assert!(left.starts_with("[REDACTED]--token ") && left.len() == 50, "{left}");
}

#[test]
fn what_looks_like_a_value_may_be_the_name_of_the_next() {
    assert_eq!(redact("password: new_password = hunter22x"), "password: new_password = [REDACTED]");
    assert_eq!(redact("password: new2_password = hunter22x"), "password: [REDACTED] = [REDACTED]");
}

#[test]
fn what_becomes_a_secret_beside_a_marker_is_redacted_with_it() {
    let text = format!("password =bGciOiJub25lIn0e.{}", "A".repeat(105));
    let once = redact(&text);
    assert_eq!(once, "password =[REDACTED][REDACTED]");
    assert_eq!(redact(&once), once);
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "",
        "The quick brown fox jumps over the lazy dog.",
        "password: your password must have eight characters",
        "see https://docs.rs/regex/1.13.1/regex/bytes/struct.RegexBuilder.html#method.unicode",
        "let access_key = configuration.credentials_provider().await?;",
        "commit 55c4cfa1d7e6b2f90817263544aabbccddeeff00",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "id 3f0f4c9e-0000-4000-8000-000000000001, next_page_token: abcdef0123456789abcdef",
        "a basic x86_64-unknown-linux-gnu build, the bearer of some-long-kebab-case-words",
        "| --- | --- |\n==================\n------------------",
        "std::collections::hash_map::DefaultHasher::new_with_keys(0, 1)",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    ] {
        assert_eq!(find(text), [], "{text}");
    }
}
