//! A configuration file, under every profile: it is read, or refused with a report that can be shown.
//!
//! The first byte is the format, `0` to `2`: YAML, JSON, TOML; the rest is the file.

#![no_main]

use std::collections::BTreeMap;

use gatehook_engine::config::{ConfigError, Diagnostics, Document, Format, ReadOptions, read_file};
use gatehook_events::Profile;
use libfuzzer_sys::fuzz_target;

const FORMATS: [Format; 3] = [Format::Yaml, Format::Json, Format::Toml];

const PROFILES: [Profile; 5] =
    [Profile::Native, Profile::DockerAgent, Profile::DockerAgentV158, Profile::OllamaCli, Profile::Ollm];

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else { return };
    let format = FORMATS[usize::from(first.wrapping_sub(b'0')) % FORMATS.len()];
    let document = match Document::from_bytes("hooks", text, Some(format)) {
        Ok(document) => document,
        Err(error) => return show(&error, text),
    };
    let env = BTreeMap::from([("HOOK_URL".to_owned(), "http://127.0.0.1:9101/pre".to_owned())]);
    for profile in PROFILES {
        let options = ReadOptions { profile, env: &env, ..ReadOptions::default() };
        let diagnostics = Diagnostics::new();
        let file = read_file(&document, &options, &diagnostics);
        if let Err(error) = diagnostics.finish(&document, file) {
            show(&error, text);
        }
    }
});

/// A report says something, points into the text, and sends nothing to a terminal but text.
fn show(error: &ConfigError, text: &[u8]) {
    assert!(error.kind().is_some(), "an error of nothing");
    let shown = &error.source_text;
    assert!(shown.is_empty() || shown.len() == text.len() || str::from_utf8(text).is_err(), "masked, not in place");
    for diagnostic in &error.diagnostics {
        let spans = diagnostic.span.iter().chain(diagnostic.related.iter().map(|(span, _)| span));
        spans.for_each(|span| assert!(span.start <= span.end && span.end <= shown.len(), "{diagnostic:?}"));
    }
    let shown = error.to_string();
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
}
