//! Transcripts: of each session a file with a message a line, for hooks to read while it goes on.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gatehook_events::fold::Change;
use gatehook_events::{Entry, Fold};
use rusqlite::Connection;

use crate::tables::entries;

/// How much is written at once while a whole transcript is.
const PIECE: usize = 256 * 1024;

/// Where the transcript of a session is that is kept in this file.
pub(super) fn path(database: &Path, session: &str) -> PathBuf {
    folder(database).join(format!("{session}.jsonl"))
}

fn folder(database: &Path) -> PathBuf {
    database.parent().unwrap_or(Path::new("")).join("transcripts")
}

/// Whether a session of this identity can have a file of its own.
pub(super) fn is_name(session: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=128).contains(&session.len()) && session.bytes().all(is_plain) && !session.starts_with('.')
}

/// Removes a transcript, whatever there is of it.
pub(super) fn remove(database: &Path, session: &str) {
    if !is_name(session) {
        return;
    }
    match fs::remove_file(path(database, session)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(session, %error, "a transcript cannot be removed");
        }
        _ => {}
    }
}

/// The transcript of a session that goes on.
#[derive(Debug)]
pub(super) struct Transcript {
    path: PathBuf,
    fold: Fold,
    /// Where each line begins.
    starts: Vec<u64>,
    length: u64,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Entry(#[from] serde_json::Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error("somebody else wrote to it")]
    Changed,
}

impl Transcript {
    /// Writes the transcript of a session anew, out of all that is kept of it. What stood there is replaced at once.
    pub(super) fn write(connection: &Connection, database: &Path, session: &str, number: i64) -> Result<Self, Failed> {
        let path = path(database, session);
        DirBuilder::new().recursive(true).mode(0o700).create(folder(database))?;
        let fresh = path.with_extension("jsonl.new");
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        let mut transcript = Self { path, fold: Fold::default(), starts: Vec::new(), length: 0 };
        let mut waiting = Vec::new();
        entries::each(connection, number, 1, |kept| {
            let changes = transcript.fold.apply(&kept.entry);
            transcript.change(&mut file, changes, &mut waiting)?;
            if waiting.len() > PIECE { flush(&mut file, &mut waiting) } else { Ok(()) }
        })?;
        flush(&mut file, &mut waiting)?;
        fs::rename(&fresh, &transcript.path)?;
        Ok(transcript)
    }

    /// Takes what was kept. After an error it is not what it should be, and is to be written anew.
    pub(super) fn append(&mut self, kept: &[Entry]) -> Result<(), Failed> {
        let changes: Vec<Change> = kept.iter().flat_map(|entry| self.fold.apply(entry)).collect();
        if !changes.iter().any(|change| matches!(change, Change::Add(_) | Change::Keep(_))) {
            return Ok(());
        }
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        let meta = file.metadata()?;
        if !meta.is_file() || meta.len() != self.length {
            return Err(Failed::Changed);
        }
        let mut waiting = Vec::new();
        self.change(&mut file, changes, &mut waiting)?;
        flush(&mut file, &mut waiting)
    }

    fn change(&mut self, file: &mut File, changes: Vec<Change>, waiting: &mut Vec<u8>) -> Result<(), Failed> {
        for change in changes {
            match change {
                Change::Add(message) => {
                    let line = message.to_line()?;
                    self.starts.push(self.length);
                    self.length += line.len() as u64;
                    waiting.extend_from_slice(line.as_bytes());
                }
                Change::Keep(count) => {
                    flush(file, waiting)?;
                    self.length = self.starts.get(count).copied().unwrap_or(self.length);
                    self.starts.truncate(count);
                    file.set_len(self.length)?;
                    io::Seek::seek(file, io::SeekFrom::End(0))?;
                }
                // The original stays.
                Change::Compact { .. } => {}
            }
        }
        Ok(())
    }
}

fn flush(file: &mut File, waiting: &mut Vec<u8>) -> Result<(), Failed> {
    file.write_all(waiting)?;
    waiting.clear();
    Ok(())
}
