//! Files of foreign programs: hooks that answer for no more than their file does, or a report that can be shown.
//!
//! The first byte is what the file is: `0` Ollama CLI's settings, `1` and `2` OLLM's records or manifest as JSON and its
//! settings as YAML, `3` docker-agent's YAML, `4` one of Gatehook's own, which may import others. The second is who answers for it, `0` the administrator.

#![no_main]

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use gatehook_engine::config::{ConfigError, Diagnostics, Document, File, Format, ReadOptions, ollm, read_file};
use gatehook_engine::definition::{SOURCES, Source};
use gatehook_events::Profile;
use libfuzzer_sys::fuzz_target;

const FILES: [(Profile, Format); 5] = [
    (Profile::OllamaCli, Format::Json),
    (Profile::Ollm, Format::Json),
    (Profile::Ollm, Format::Yaml),
    (Profile::DockerAgent, Format::Yaml),
    (Profile::Native, Format::Yaml),
];

fuzz_target!(|data: &[u8]| {
    let [file, source, text @ ..] = data else { return };
    let (profile, format) = FILES[usize::from(file.wrapping_sub(b'0')) % FILES.len()];
    let (_, source) = SOURCES[usize::from(source.wrapping_sub(b'0')) % SOURCES.len()];
    let document = match Document::from_bytes("hooks", text, Some(format)) {
        Ok(document) => document,
        Err(error) => return show(&error, text),
    };
    let env = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned()), ("TOKEN".to_owned(), "t".to_owned())]);
    let options = ReadOptions { profile, source, env: &env, working_dir: PROJECT.into(), ..ReadOptions::default() };
    let Some(file) = read(&document, &options, text) else { return };
    for hook in file.hooks.groups.iter().flat_map(|group| &group.hooks) {
        assert!(hook.origin.source >= source, "{:?} out of a file of {source:?}", hook.origin.source);
        assert!(hook.written.is_some(), "nobody could approve {hook:?}");
    }
    for import in file.imports.iter().filter(|_| source.needs_approval()) {
        assert!(stays(&import.file), "{} is out of the project", import.file.display());
    }
    let off =
        BTreeMap::from([("OLLAMA_HOOKS_ENABLED".to_owned(), "off".to_owned()), ("PATH".to_owned(), "/bin".to_owned())]);
    let switched = read(&document, &ReadOptions { env: &off, ..options.clone() }, text);
    if let Some(switched) = switched.filter(|_| profile == Profile::OllamaCli) {
        let on = |file: &File| {
            file.hooks.groups.iter().flat_map(|group| &group.hooks).filter(|hook| hook.switched_off.is_none()).count()
        };
        let want = if source == Source::Managed { on(&file) } else { 0 };
        assert_eq!(on(&switched), want, "{source:?} switched off");
    }
    if profile == Profile::Ollm {
        let diagnostics = Diagnostics::new();
        let mut again = ollm::read(&document, &options, &diagnostics);
        assert_eq!(again.hooks, file.hooks, "two readers of one file");
        again.options.clone().apply(&mut again.hooks, "its file");
        assert_eq!(again.hooks, file.hooks, "what is off was off");
    }
});

const PROJECT: &str = "/home/project";

/// Whether a path, without a look at links, is below the project's folder.
fn stays(path: &Path) -> bool {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.starts_with(PROJECT)
}

/// A file without a problem.
fn read(document: &Document, options: &ReadOptions<'_>, text: &[u8]) -> Option<File> {
    let diagnostics = Diagnostics::new();
    let file = read_file(document, options, &diagnostics);
    diagnostics.finish(document, file).map_err(|error| show(&error, text)).ok()
}

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
