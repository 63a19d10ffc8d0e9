//! The approvals of one person, in one file.
//!
//! A file instead of a database: it is read at each start, in well under a millisecond, and a person can read it too. It
//! is replaced as a whole, by one writer at a time. What cannot be read is never written over: then nothing that needs an
//! approval runs, and the owner moves the file away.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::kept::StoreError;
use super::kept::{Kept, KeptFile};

/// The format.
const VERSION: u32 = 1;

/// One approval: of this hook of this project, with this content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The project's folder, without links.
    pub project: String,
    /// Which hook of the project: its file, event and name.
    pub hook: String,
    /// The hash of its [`Content`](super::Content).
    pub hash: String,
    /// When, in RFC 3339.
    pub approved_at: String,
    /// By whom.
    pub approved_by: String,
    /// The definition, to show what changed.
    pub definition: Value,
    /// The files, to show what changed.
    pub files: Vec<ApprovedFile>,
}

/// A file as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedFile {
    /// Its path from the project's folder.
    pub path: String,
    /// Where its links led, if it had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its text, where it was one and not long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// All approvals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Approvals {
    all: Vec<Approval>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<A> {
    version: u32,
    approvals: A,
}

/// The file.
pub type Store = KeptFile<Approvals>;

/// The version alone, before anything else is looked at.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Approvals {
    /// Reads a file's bytes.
    ///
    /// ```
    /// use gatehook_engine::trust::store::Approvals;
    ///
    /// assert_eq!(Approvals::parse(br#"{"version": 1, "approvals": []}"#), Ok(Approvals::default()));
    /// assert!(Approvals::parse(b"").is_err());
    /// assert_eq!(Approvals::parse(br#"{"version": 2}"#).unwrap_err(), "it has version 2, this program knows 1");
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let Versioned { version } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if version != VERSION {
            return Err(format!("it has version {version}, this program knows {VERSION}"));
        }
        let file: File<Vec<Approval>> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        Ok(Self { all: file.approvals })
    }

    /// The same as a file's bytes.
    pub fn to_json(&self) -> String {
        let file = File { version: VERSION, approvals: &self.all };
        // Text and numbers alone: there is always JSON for them.
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }

    /// The approval of exactly this content in this project.
    pub fn of(&self, project: &Path, hash: &str) -> Option<&Approval> {
        self.in_project(project).find(|approval| approval.hash == hash)
    }

    /// The last approval of a hook, whatever its content was.
    pub fn last(&self, project: &Path, hook: &str) -> Option<&Approval> {
        self.in_project(project).filter(|approval| approval.hook == hook).last()
    }

    /// All approvals of a project.
    pub fn in_project(&self, project: &Path) -> impl Iterator<Item = &Approval> {
        let project = project.to_string_lossy().into_owned();
        self.all.iter().filter(move |approval| approval.project == project)
    }

    /// These and one more, in the place of what was approved of that hook before.
    #[must_use]
    pub fn with(mut self, approval: Approval) -> Self {
        self.all.retain(|other| (&other.project, &other.hook) != (&approval.project, &approval.hook));
        self.all.push(approval);
        self
    }

    /// Drops approvals; says how many.
    pub fn remove(&mut self, gone: impl Fn(&Approval) -> bool) -> usize {
        let before = self.all.len();
        self.all.retain(|approval| !gone(approval));
        before - self.all.len()
    }
}

impl Kept for Approvals {
    const MAX_FILE: u64 = 64 << 20;

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        Self::parse(bytes)
    }

    fn to_json(&self) -> String {
        self.to_json()
    }
}
