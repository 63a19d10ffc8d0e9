//! What a path leads to, and which files a pattern of a shell fits.

use std::path::{Component, Path, PathBuf};

use regex::RegexBuilder;

use super::super::globs::expression;

/// Links that are followed to files that do not exist yet.
const LINKS: usize = 16;
/// Entries of folders that one pattern is held against.
const ENTRIES: usize = 20_000;
/// Files that one pattern may fit.
const FILES: usize = 1000;
/// Words that the braces of one may come to.
const BRACES: usize = 64;

/// The path without `.` and `..`, as many programs read it that do not ask the file system.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Where the path leads: links are followed as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    followed(path, LINKS)
}

fn followed(path: &Path, links: usize) -> PathBuf {
    let mut exists = path;
    let mut rest = Vec::new();
    loop {
        if let Ok(real) = exists.canonicalize() {
            return plain(&rest.iter().rev().fold(real, |path, part| path.join(part)));
        }
        // A link to what does not exist yet: to write to it makes what it leads to.
        if links > 0
            && let Ok(target) = exists.read_link()
        {
            let target = exists.parent().unwrap_or(Path::new("/")).join(target);
            return followed(&rest.iter().rev().fold(target, |path, part| path.join(part)), links - 1);
        }
        let Some(parent) = exists.parent() else { return plain(path) };
        rest.push(exists.file_name().map_or_else(|| "..".into(), std::ffi::OsStr::to_owned));
        exists = parent;
    }
}

/// The words that a word with braces stands for, `\` before what stands for itself.
pub(super) fn braces(pattern: &str) -> Vec<String> {
    let mut words = vec![pattern.to_owned()];
    let mut done = Vec::new();
    while let Some(word) = words.pop() {
        match outer_braces(&word) {
            Some((before, inside, after)) if words.len() + done.len() + inside.len() <= BRACES => {
                words.extend(inside.iter().map(|choice| format!("{before}{choice}{after}")));
            }
            _ => done.push(word),
        }
    }
    done
}

/// The first `{a,b}` of a word, and what stands around it.
fn outer_braces(word: &str) -> Option<(&str, Vec<&str>, &str)> {
    let (mut depth, mut start, mut commas, mut escaped) = (0_usize, 0, Vec::new(), false);
    for (at, char) in word.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => {
                if depth == 0 {
                    (start, commas) = (at, Vec::new());
                }
                depth += 1;
            }
            ',' if depth == 1 => commas.push(at),
            '}' if depth == 1 && !commas.is_empty() => {
                let starts = std::iter::once(start).chain(commas.iter().copied());
                let ends = commas.iter().copied().chain(std::iter::once(at));
                let inside = starts.zip(ends).filter_map(|(from, to)| word.get(from + 1..to)).collect();
                return Some((word.get(..start)?, inside, word.get(at + 1..)?));
            }
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The files that a pattern fits, as a shell finds them from `base`; `None` where that are too many to tell.
pub(super) fn fitting(base: &Path, pattern: &str) -> Option<Vec<PathBuf>> {
    let start = if pattern.starts_with('/') { Path::new("/") } else { base };
    let mut found = vec![start.to_owned()];
    let mut left = ENTRIES;
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for folder in found {
            if !part.contains(['*', '?', '[']) {
                next.push(folder.join(part.replace('\\', "")));
                continue;
            }
            let regex =
                RegexBuilder::new(&format!("^{}$", expression(part))).dot_matches_new_line(true).build().ok()?;
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                left = left.checked_sub(1)?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if regex.is_match(&name) && (!name.starts_with('.') || part.starts_with('.')) {
                    next.push(entry.path());
                }
            }
            if next.len() > FILES {
                return None;
            }
        }
        found = next;
    }
    Some(found)
}
