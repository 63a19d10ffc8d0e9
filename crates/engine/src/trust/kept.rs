//! Files of approvals, whatever stands in them: read whole, changed by one writer at a time, never written over where they
//! cannot be read.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::atomic::{self, Lock};

/// What stands in such a file.
pub trait Kept: Default {
    /// Bytes of the file.
    const MAX_FILE: u64;

    /// Reads a file's bytes, or says why they cannot be read.
    fn parse(bytes: &[u8]) -> Result<Self, String>;

    /// The same as a file's bytes.
    fn to_json(&self) -> String;
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile<K> {
    path: PathBuf,
    kept: PhantomData<fn() -> K>,
}

impl<K: Kept> KeptFile<K> {
    /// The approvals in this file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path, kept: PhantomData }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All approvals; none where there is no file.
    pub fn read(&self) -> Result<K, StoreError> {
        let bytes =
            atomic::read(&self.path, K::MAX_FILE).map_err(|error| StoreError::new(&self.path, "read", error))?;
        let Some(bytes) = bytes else { return Ok(K::default()) };
        K::parse(&bytes).map_err(|cause| StoreError::new(&self.path, "read", cause))
    }

    /// Changes the approvals as they are at this moment. A file that cannot be read stays as it is.
    pub fn change<T>(&self, change: impl FnOnce(&mut K) -> T) -> Result<T, StoreError> {
        let unwritable = |error| StoreError::new(&self.path, "written", error);
        let lock = Lock::take(&self.path).map_err(unwritable)?;
        let mut kept = self.read()?;
        let changed = change(&mut kept);
        atomic::replace(&self.path, kept.to_json().as_bytes(), &lock).map_err(unwritable)?;
        Ok(changed)
    }
}

/// Why approvals cannot be read or written. The file is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the approvals in {path} cannot be {doing}: {cause}", path = path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// `read` or `written`.
    pub doing: &'static str,
    /// Why.
    pub cause: String,
}

impl StoreError {
    fn new(path: &Path, doing: &'static str, cause: impl ToString) -> Self {
        Self { path: path.to_owned(), doing, cause: cause.to_string() }
    }

    /// What its owner can do about it.
    pub fn help(&self) -> String {
        let path = self.path.display();
        match self.doing {
            "read" if self.cause.contains("others than its owner") => {
                format!("look through it, then `chmod 600 {path}`")
            }
            "read" => format!(
                "nothing that needs an approval runs until it is repaired or moved away, as in `mv {path} {path}.broken`; \
                 then approve again by `gatehook hooks trust`"
            ),
            _ => "nothing was approved, and what was approved before still is".to_owned(),
        }
    }
}
