//! What the person wrote before, in this session and in others.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Texts that are known at most.
const TEXTS: usize = 1000;

/// Bytes of the file that are read: its end.
const READ: u64 = 1024 * 1024;

/// Bytes of the file from which on only its end is kept.
const FULL: u64 = 4 * READ;

/// Texts, the newest last, and a place among them.
#[derive(Debug, Default)]
pub(crate) struct History {
    texts: Vec<String>,
    at: Option<usize>,
    /// What was being written before a text of the past took its place.
    draft: String,
}

impl History {
    pub(crate) fn new(texts: Vec<String>) -> Self {
        Self { texts, at: None, draft: String::new() }
    }

    /// Takes one more. One that begins with a blank is not kept; whether it was.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        self.at = None;
        let is_kept =
            !text.starts_with(' ') && !text.trim().is_empty() && self.texts.last().is_none_or(|last| last != text);
        if is_kept {
            if self.texts.len() >= TEXTS {
                self.texts.remove(0);
            }
            self.texts.push(text.to_owned());
        }
        is_kept
    }

    /// The one before, in place of what is written now.
    pub(crate) fn back(&mut self, now: &str) -> Option<&str> {
        let at = match self.at {
            Some(at) => at.checked_sub(1)?,
            None => {
                let last = self.texts.len().checked_sub(1)?;
                now.clone_into(&mut self.draft);
                last
            }
        };
        self.at = Some(at);
        self.texts.get(at).map(String::as_str)
    }

    /// The one after; behind the last one, what was being written.
    pub(crate) fn forth(&mut self) -> Option<&str> {
        let at = self.at?.saturating_add(1);
        self.at = (at < self.texts.len()).then_some(at);
        Some(self.texts.get(at).map_or(&*self.draft, String::as_str))
    }

    /// What is written now is no text of the past any more.
    pub(crate) fn leave(&mut self) {
        self.at = None;
    }

    /// The newest text with these words in it, after so many others; where there are not that many, none.
    pub(crate) fn find(&self, words: &str, skipped: usize) -> Option<&str> {
        let words = words.to_lowercase();
        let mut seen = std::collections::HashSet::new();
        let found = self.texts.iter().rev().filter(|text| !words.is_empty() && text.to_lowercase().contains(&words));
        found.filter(|text| seen.insert(text.as_str())).nth(skipped).map(String::as_str)
    }
}

/// The file that keeps texts: JSON strings, a line each. It is the person's alone.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The texts of its end. What cannot be read is no history.
    pub(crate) fn read(&self) -> Vec<String> {
        let read = || {
            let mut file = std::fs::File::open(&self.path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
            let mut bytes = Vec::new();
            file.take(READ).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        let bytes = read().unwrap_or_default();
        // The first line may be the end of one.
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<String>(line).ok());
        let texts: Vec<_> = lines.collect();
        texts.into_iter().rev().take(TEXTS).rev().collect()
    }

    /// Writes one more.
    pub(crate) fn add(&self, text: &str) -> std::io::Result<()> {
        let mut line = serde_json::to_string(text)?;
        line.push('\n');
        if std::fs::metadata(&self.path).is_ok_and(|file| file.len() > FULL) {
            self.shorten()?;
        }
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        open(&self.path, true)?.write_all(line.as_bytes())
    }

    fn shorten(&self) -> std::io::Result<()> {
        let mut lines = String::new();
        for text in self.read() {
            lines.push_str(&serde_json::to_string(&text)?);
            lines.push('\n');
        }
        let beside = self.path.with_extension("new");
        open(&beside, false)?.write_all(lines.as_bytes())?;
        std::fs::rename(beside, &self.path)
    }
}

fn open(path: &Path, append: bool) -> std::io::Result<std::fs::File> {
    OpenOptions::new().create(true).write(true).append(append).truncate(!append).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_and_forth_ends_at_what_was_being_written() {
        let mut history = History::new(vec!["one".into(), "two".into()]);
        assert_eq!(history.back("dra"), Some("two"));
        assert_eq!(history.back("two"), Some("one"));
        assert_eq!(history.back("one"), None);
        assert_eq!(history.forth(), Some("two"));
        assert_eq!(history.forth(), Some("dra"));
        assert_eq!(history.forth(), None);
    }

    #[test]
    fn what_begins_with_a_blank_is_not_kept() {
        let mut history = History::default();
        assert!(!history.add(" secret"));
        assert!(history.add("a b"));
        assert!(!history.add("a b"));
        assert_eq!(history.find("B", 0), Some("a b"));
        assert_eq!(history.find("b", 1), None);
    }

    #[test]
    fn a_file_keeps_texts_of_many_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(folder.path().join("a/history"));
        assert!(file.read().is_empty());
        file.add("one\ntwo").unwrap();
        std::fs::write(&file.path, [std::fs::read(&file.path).unwrap(), b"\xff no text\n".to_vec()].concat()).unwrap();
        file.add("three").unwrap();
        assert_eq!(file.read(), ["one\ntwo", "three"]);
    }
}
