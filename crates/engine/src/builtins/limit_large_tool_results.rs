//! `limit_large_tool_results`: what a tool answers beyond measure goes to a file, and the model is told where.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Event, FailureKind, Input, Output};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::place::Place;
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler, HandlerError};
use crate::registry::BuiltinResult;

/// Bytes that a result may have, and that are shown of a longer one.
const BYTES: usize = 50 << 10;
/// Lines that a result may have, and that are shown of a longer one.
const LINES: usize = 2000;

const CATEGORIES: &[&str] = &["filesystem", "shell", "mcp", "a2a"];

/// The tool whose beginning is shown: it can be asked to go on.
const READS_ON: &str = "read_file";

struct LimitLargeToolResults(Arc<Place>);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("limit_large_tool_results")?;
    arguments.warn_if_concurrent("limit_large_tool_results");
    Ok(Judging::handler(LimitLargeToolResults(Place::of(arguments)?)))
}

impl Judge for LimitLargeToolResults {
    const READS_FILES: bool = true;

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let failed = |error: io::Error| HandlerError::new(FailureKind::HandlerError, error.to_string());
        let session = input.session_id.as_deref().unwrap_or_default();
        if event == Event::SessionEnd {
            return self.forget(session).map(|()| None).map_err(failed);
        }
        if !self.is_limited(input.tool_category.as_deref()) {
            return Ok(None);
        }
        let text = match input.tool_response.as_deref() {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Array(_) | Value::Object(_))) => value.to_string(),
            _ => return Ok(None),
        };
        if text.len() <= BYTES && text.lines().count() <= LINES {
            return Ok(None);
        }
        let path = self.keep(session, &text).map_err(failed)?;
        let head = input.tool_name.as_deref() == Some(READS_ON);
        let shown = if head { beginning(&text, &path) } else { ending(&text, &path) };
        Ok(Some(Output::specific(HookSpecificOutput {
            updated_tool_response: Some(shown.into()),
            ..HookSpecificOutput::default()
        })))
    }
}

impl LimitLargeToolResults {
    /// A host on the wire knows no categories; docker-agent knows them always.
    fn is_limited(&self, category: Option<&str>) -> bool {
        let native = self.0.profile == gatehook_events::Profile::Native;
        category.map_or(native, |category| CATEGORIES.contains(&category))
    }

    /// Where all sessions' folders are; each user has their own, since others can write beside it.
    fn base(&self) -> PathBuf {
        let temporary = self.0.variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        temporary.join(format!("gatehook-tool-results-{}", rustix::process::geteuid().as_raw()))
    }

    fn keep(&self, session: &str, text: &str) -> io::Result<PathBuf> {
        let folder = self.base().join(folder_name(session));
        own(&self.base())?;
        own(&folder)?;
        let path = folder.join(format!("{}.txt", uuid::Uuid::new_v4().simple()));
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes()).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(path)
    }

    fn forget(&self, session: &str) -> io::Result<()> {
        if !self.base().symlink_metadata().is_ok_and(|metadata| is_own(&metadata)) {
            return Ok(());
        }
        match std::fs::remove_dir_all(self.base().join(folder_name(session))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Makes a folder that is this user's alone, or makes sure that it is.
fn own(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    if is_own(&folder.symlink_metadata()?) {
        return Ok(());
    }
    let message = format!("{} is no folder of this user alone", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn is_own(metadata: &std::fs::Metadata) -> bool {
    metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode().trailing_zeros() >= 6
}

/// A session's name as that of a folder.
fn folder_name(session: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    let name = utf8_percent_encode(session, KEPT).to_string();
    match name.as_str() {
        "" => "unknown".to_owned(),
        _ if name.starts_with('.') => format!("%2E{}", name.get(1..).unwrap_or_default()),
        _ if name.len() > 200 => Sha256::digest(session).iter().map(|byte| format!("{byte:02x}")).collect(),
        _ => name,
    }
}

fn ending(text: &str, path: &Path) -> String {
    let from = text.ceil_char_boundary(text.len().saturating_sub(BYTES));
    let shown = text.get(from..).unwrap_or_default();
    let mut starts = shown.strip_suffix('\n').unwrap_or(shown).rmatch_indices('\n');
    let first = starts.nth(LINES - 1).map_or(0, |(at, _)| at + 1);
    let shown = shown.get(first..).unwrap_or_default();
    format!(
        "[This result is too long: {} bytes in {} lines. All of it is in {}; this is its end, {} lines.]\n{shown}",
        text.len(),
        text.lines().count(),
        path.display(),
        shown.lines().count(),
    )
}

fn beginning(text: &str, path: &Path) -> String {
    let cut = text.get(..text.floor_char_boundary(BYTES)).unwrap_or_default();
    let whole = match cut.match_indices('\n').nth(LINES - 1) {
        Some((end, _)) => cut.get(..end).unwrap_or_default(),
        None => cut.rsplit_once('\n').map_or("", |(whole, _)| whole),
    };
    // Whole lines, unless the first one is too long by itself.
    let (shown, lines) = if whole.is_empty() { (cut, 0) } else { (whole, whole.split('\n').count()) };
    let (bytes, all, path) = (text.len(), text.lines().count(), path.display());
    let hint = if lines == 0 {
        format!("a single line is longer than {BYTES} bytes; this is its beginning. Read the rest in parts of bytes.")
    } else {
        format!("these are lines 1 to {lines}. Go on from line {}.", lines + 1)
    };
    format!("{shown}\n[This result is too long: {bytes} bytes in {all} lines, {hint} All of it is in {path}.]")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::super::tests::{in_folder, verdict_of};
    use super::*;

    async fn shown(dir: &Path, input: Value) -> Option<String> {
        let executor = in_folder(Event::ToolResponseTransform, "limit_large_tool_results", &[], dir);
        let verdict = verdict_of(&executor, Event::ToolResponseTransform, input).await;
        verdict.rewritten.tool_response.map(|response| response.as_str().unwrap().to_owned())
    }

    fn spilled(dir: &Path) -> Vec<PathBuf> {
        let base = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
        let folders = std::fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path());
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())).collect()
    }

    #[tokio::test]
    async fn a_long_result_goes_to_a_file_of_this_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let text = "x".repeat(BYTES) + "the end";
        let input = json!({"session_id": "a/b", "tool_category": "shell", "tool_response": text});
        let shown = shown(dir.path(), input).await.unwrap();
        assert!(shown.ends_with("the end") && shown.len() < BYTES + 1000, "{}", shown.len());
        let [file] = &spilled(dir.path())[..] else { panic!() };
        assert!(shown.contains(file.to_str().unwrap()), "{}", &shown[..200]);
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));
        let executor = in_folder(Event::SessionEnd, "limit_large_tool_results", &[], dir.path());
        verdict_of(&executor, Event::SessionEnd, json!({"session_id": "a/b"})).await;
        assert!(!file.parent().unwrap().exists());
    }

    #[tokio::test]
    async fn what_is_within_the_limits_or_of_another_kind_stays() {
        let dir = tempfile::tempdir().unwrap();
        for (category, text, stays) in [
            ("shell", "x".repeat(BYTES), true),
            ("shell", "x\n".repeat(LINES), true),
            ("shell", "x\n".repeat(LINES + 1), false),
            ("memory", "x".repeat(BYTES * 2), true),
            ("mcp", "ä".repeat(BYTES), false),
        ] {
            let size = text.len();
            let input = json!({"session_id": "s", "tool_category": category, "tool_response": text});
            assert_eq!(shown(dir.path(), input).await.is_none(), stays, "{category}: {size} bytes");
        }
    }

    #[tokio::test]
    async fn a_folder_that_somebody_else_prepared_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let base = dir.path().join(format!("gatehook-tool-results-{}", rustix::process::geteuid().as_raw()));
        std::os::unix::fs::symlink(other.path(), base).unwrap();
        let input = json!({"session_id": "s", "tool_response": "x".repeat(BYTES + 1)});
        assert_eq!(shown(dir.path(), input).await, None);
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_session_never_names_a_folder_elsewhere() {
        for session in ["", ".", "..", "../..", "a/b", &"long".repeat(100), "ümlaut\0"] {
            let name = folder_name(session);
            assert!(!name.contains('/') && name != "." && name != ".." && name.len() < 255, "{session:?}: {name}");
        }
    }

    #[test]
    fn a_file_is_shown_from_its_beginning_with_the_line_to_go_on_from() {
        let text = (1..=5000).map(|line| format!("line {line}\n")).collect::<String>();
        let shown = beginning(&text, Path::new("/spill"));
        assert!(shown.starts_with("line 1\n") && shown.contains("line 2000\n"), "{}", &shown[..50]);
        assert!(!shown.contains("line 2001\n") && shown.contains("Go on from line 2001."));
        let shown = beginning(&"y".repeat(BYTES * 2), Path::new("/spill"));
        assert!(shown.starts_with(&"y".repeat(BYTES)) && shown.contains("a single line is longer"));
    }

    proptest! {
        #[test]
        fn any_text_has_an_end_and_a_beginning(text in "(?s).{0,400}", times in 1_usize..400) {
            let text = text.repeat(times);
            for shown in [ending(&text, Path::new("p")), beginning(&text, Path::new("p"))] {
                prop_assert!(shown.len() <= BYTES + 300, "{}", shown.len());
                prop_assert!(shown.lines().count() <= LINES + 2);
            }
        }
    }
}
