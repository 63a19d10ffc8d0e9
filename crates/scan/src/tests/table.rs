//! What the search takes for granted about the table.

use std::collections::HashSet;

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::carry::{LEAD, LITERAL};
use crate::prefilter::compile;
use crate::rule::{Place, Rule};
use crate::rules;
use crate::run::{MIN_RUN, is_token};

#[test]
fn identifiers_are_unique_and_in_kebab_case() {
    let mut seen = HashSet::new();
    for rule in rules() {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(rule.id().chars().all(plain), "{}", rule.id());
        assert!(!rule.name().is_empty(), "{}", rule.id());
        assert!(seen.insert(rule.id()), "twice {}", rule.id());
    }
    assert!(seen.len() >= 220, "{}", seen.len());
}

#[test]
fn every_pattern_compiles() {
    for rule in rules() {
        if let Err(error) = compile(rule) {
            panic!("{}: {error}", rule.id());
        }
    }
}

#[test]
fn what_a_rule_matches_begins_with_a_long_run() {
    for rule in rules().filter(|rule| rule.place != Place::Text) {
        let hir = parse(rule);
        let pattern = leading_run(&hir).0;
        assert!(hir.properties().minimum_len() > Some(0), "{} leaves nothing to the pattern", rule.id());
        let lead = rule.lead.as_ref().map_or(0, |lead| lead.min);
        if let Some(lead) = &rule.lead {
            assert!((0..=255).all(|byte| !(lead.class)(byte) || is_token(byte)), "lead of {}", rule.id());
        }
        for literal in rule.literals {
            let in_run = rule.place == Place::Run;
            assert!(!in_run || literal.bytes().all(is_token), "{literal} of {}", rule.id());
            let run = lead + pattern + if in_run { literal.len() } else { 0 };
            assert!(run >= MIN_RUN, "{}: {literal} promises a run of {run} only", rule.id());
        }
    }
}

#[test]
fn keywords_are_written_as_names_are_compared() {
    for rule in rules().filter(|rule| rule.place == Place::Name) {
        for keyword in rule.literals {
            let bare = keyword.strip_prefix('^').unwrap_or(keyword);
            let bare = bare.strip_suffix('$').unwrap_or(bare);
            assert!(bare.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{keyword} of {}", rule.id());
        }
    }
}

#[test]
fn anchors_never_overlap() {
    let anchors: HashSet<&str> = rules().filter(|r| r.place == Place::Text).flat_map(|r| r.literals).copied().collect();
    for one in &anchors {
        for other in &anchors {
            assert!(one == other || !one.contains(other), "{other} inside {one}");
            let overlap = (1..one.len()).any(|at| other.starts_with(&one[at..]));
            assert!(!overlap, "{one} runs into {other}");
        }
    }
}

#[test]
fn what_a_growing_text_is_held_for_is_bounded() {
    for rule in rules() {
        let literal = rule.literals.iter().map(|literal| literal.len()).max().unwrap_or(0);
        let lead = rule.lead.as_ref().map_or(0, |lead| lead.max);
        let in_text = rule.place != Place::Name;
        assert!(!in_text || lead + literal <= LEAD, "{} stands {} bytes unseen", rule.id(), lead + literal);
        assert!(literal <= LITERAL, "a literal of {} is longer", rule.id());
    }
}

#[test]
fn a_token_is_its_whole_match() {
    for rule in rules().filter(|rule| rule.place == Place::Run) {
        assert_eq!(compile(rule).unwrap().captures_len(), 1, "{} may begin inside of a word", rule.id());
    }
}

fn parse(rule: &Rule) -> Hir {
    let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(rule.pattern).unwrap()
}

/// How many token characters every match of `hir` begins with at least, and whether it consists of nothing else.
fn leading_run(hir: &Hir) -> (usize, bool) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, true),
        HirKind::Literal(literal) => {
            let tokens = literal.0.iter().take_while(|&&byte| is_token(byte)).count();
            (tokens, tokens == literal.0.len())
        }
        HirKind::Class(Class::Bytes(class)) => {
            let tokens = class.iter().all(|range| (range.start()..=range.end()).all(is_token));
            (usize::from(tokens), tokens)
        }
        HirKind::Class(Class::Unicode(_)) => (0, false),
        HirKind::Capture(capture) => leading_run(&capture.sub),
        HirKind::Repetition(repetition) => match leading_run(&repetition.sub) {
            (run, true) => (run * repetition.min as usize, true),
            (run, false) => (if repetition.min == 0 { 0 } else { run }, false),
        },
        HirKind::Concat(parts) => parts.iter().fold((0, true), |(run, all), part| match leading_run(part) {
            (more, only) if all => (run + more, only),
            _ => (run, false),
        }),
        HirKind::Alternation(ways) => {
            let ways = ways.iter().map(leading_run);
            ways.reduce(|(run, all), (other, only)| (run.min(other), all && only)).unwrap_or((0, true))
        }
    }
}
