//! Outputs that close, fill up, or are no terminal.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::support::{Home, ran};

/// Commands that print more than a pipe holds, or little.
const PRINTING: &[&[&str]] = &[&["schema"], &["completions", "bash"], &["hooks", "list"], &["demo", "--once"]];

fn policy(home: &Home) {
    let policy = "hooks: { pre_inference: [{ type: builtin, command: redact_secrets }] }\n";
    home.file("home/.config/gatehook/gatehook.yaml", policy);
}

#[test]
fn a_reader_that_has_read_enough_is_no_failure() {
    let home = Home::new();
    policy(&home);
    for args in PRINTING {
        let mut child = home.gatehook().args(*args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!first.is_empty(), "{args:?}");
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_reader_that_reads_nothing_is_no_failure() {
    let home = Home::new();
    policy(&home);
    for args in PRINTING {
        let mut child = home.gatehook().args(*args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn an_output_that_is_full_is_a_failure_that_says_so() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let home = Home::new();
    policy(&home);
    for args in PRINTING {
        let output = home.gatehook().args(*args).stdout(full.try_clone().unwrap()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(71), "{args:?}: {said}");
        assert!(said.contains("standard output cannot be written: No space left"), "{args:?}: {said}");
    }
}

#[test]
fn what_is_no_terminal_gets_no_colour() {
    let home = Home::new();
    home.file("bad.yaml", "hooks: 3\n");
    for args in [&["hooks", "check", "bad.yaml"][..], &["serve", "--check", "--config", "bad.yaml"], &["--help"]] {
        let ran = ran(home.gatehook().args(args).env("TERM", "xterm-256color"));
        assert!(!ran.shown().contains('\u{1b}'), "{args:?}: {}", ran.shown());
    }
}

#[test]
fn json_is_one_line_where_it_is_piped() {
    let home = Home::new();
    policy(&home);
    for args in
        [&["hooks", "list", "--json"][..], &["hooks", "test", "pre_inference", "--json"], &["demo", "--once", "--json"]]
    {
        assert_eq!(home.run(args).out.lines().count(), 1, "{args:?}");
    }
}
