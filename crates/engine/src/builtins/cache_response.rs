//! `cache_response`: what was answered to a question is kept, so that a host need not ask the model again.
//!
//! The hook on `stop` keeps; the host looks up by [`answer`] before it calls the model. The file holds one JSON line for
//! each answer, questions as SHA-256 alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatehook_events::{Event, FailureKind, Input};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::place::{Place, state};
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler, HandlerError};
use crate::registry::BuiltinResult;
use crate::time;

/// Answers that a file has.
const ANSWERS: usize = 1000;
/// Bytes of a file; what is longer is begun anew with the answers that fit.
const BYTES: u64 = 16 << 20;
/// Bytes of one answer.
const ANSWER: usize = 1 << 20;

/// How long a file may be in use by others.
const PATIENCE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(10);

/// How questions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Comparison {
    /// `A` and `a` are two questions.
    pub case_sensitive: bool,
    /// Blanks before and behind count.
    pub keep_blanks: bool,
}

struct CacheResponse {
    file: PathBuf,
    comparison: Comparison,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    question: String,
    answer: String,
    time: String,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let help = "as in `args: [answers.jsonl, case_sensitive]`; without a file it is in XDG_STATE_HOME";
    let mut comparison = Comparison::default();
    let mut file = None;
    for arg in arguments.args {
        match arg.as_str() {
            "case_sensitive" => comparison.case_sensitive = true,
            "keep_blanks" => comparison.keep_blanks = true,
            path if file.is_none() && !path.is_empty() => file = Some(arguments.env.working_dir.join(path)),
            other => return Err(Arguments::wrong(format!("`cache_response` does not know `{other}`"), help)),
        }
    }
    let place = Place::of(arguments)?;
    let file = file.or_else(|| Some(state(&place.env)?.join("responses.jsonl")));
    let file =
        file.ok_or_else(|| Arguments::wrong("neither XDG_STATE_HOME nor HOME says where to keep answers", help))?;
    Ok(Judging::handler(CacheResponse { file, comparison }))
}

impl Judge for CacheResponse {
    const READS_FILES: bool = true;

    fn judge(&self, _event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let (Some(question), Some(answer)) = (&input.last_user_message, &input.stop_response) else { return Ok(None) };
        if question.trim().is_empty() || answer.trim().is_empty() || answer.len() > ANSWER {
            return Ok(None);
        }
        let kept = keep(&self.file, question, answer, self.comparison);
        let failed = |error: io::Error| {
            HandlerError::new(FailureKind::HandlerError, format!("{} cannot be written: {error}", self.file.display()))
        };
        kept.map(|()| None).map_err(failed)
    }
}

fn digest(question: &str, comparison: Comparison) -> String {
    let question = if comparison.keep_blanks { question } else { question.trim() };
    let question = if comparison.case_sensitive { question.to_owned() } else { question.to_lowercase() };
    Sha256::digest(question).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was last answered to this question. Blocks. A file that is not there has no answers.
///
/// ```
/// use gatehook_engine::builtins::cache_response::{Comparison, answer};
///
/// let file = std::path::Path::new("/no/such/responses.jsonl");
/// assert_eq!(answer(file, "What is it?", Comparison::default())?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn answer(file: &Path, question: &str, comparison: Comparison) -> io::Result<Option<String>> {
    let file = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    locked(|| file.try_lock_shared())?;
    let question = digest(question, comparison);
    Ok(lines(&file)?.into_iter().rfind(|line| line.question == question).map(|line| line.answer))
}

/// Waits for others that read and write, but not for ever.
fn locked(lock: impl Fn() -> Result<(), TryLockError>) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => std::thread::sleep(RETRY),
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Lines that cannot be read, as one that was cut short, are left out.
fn lines(file: &File) -> io::Result<Vec<Line>> {
    let mut bytes = Vec::new();
    file.take(BYTES * 2).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn keep(path: &Path, question: &str, answer: &str, comparison: Comparison) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    locked(|| file.try_lock())?;
    let line = Line { question: digest(question, comparison), answer: answer.to_owned(), time: time::now() };
    let known = lines(&file)?;
    let size = file.metadata()?.len();
    if known.len() >= ANSWERS || size > BYTES {
        return renew(&mut file, known, line);
    }
    file.write_all(&written(&line)?)
}

/// The newest half of what was known, and the new one.
fn renew(file: &mut File, mut known: Vec<Line>, line: Line) -> io::Result<()> {
    known.retain(|old| old.question != line.question);
    known.drain(..known.len() - known.len().min(ANSWERS / 2));
    known.push(line);
    let (mut newest, mut size) = (Vec::new(), 0);
    for line in known.iter().rev() {
        let line = written(line)?;
        size += line.len() as u64;
        if size > BYTES / 2 && !newest.is_empty() {
            break;
        }
        newest.push(line);
    }
    newest.reverse();
    file.set_len(0)?;
    file.write_all(&newest.concat())
}

fn written(line: &Line) -> io::Result<Vec<u8>> {
    let mut written = serde_json::to_vec(line)?;
    written.push(b'\n');
    Ok(written)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::verdict;
    use super::*;

    #[tokio::test]
    async fn an_answer_is_kept_and_found_by_its_question() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/answers.jsonl");
        for (question, said) in [("What is it? ", "a stone"), ("Who?", "nobody"), ("what IS it?", "a tree"), ("x", "")]
        {
            let input = json!({"last_user_message": question, "stop_response": said});
            assert!(
                verdict(Event::Stop, "cache_response", &[file.to_str().unwrap()], input).await.outcomes[0]
                    .reason
                    .is_empty()
            );
        }
        let ask = |question| answer(&file, question, Comparison::default()).unwrap();
        assert_eq!(ask("  what is it?"), Some("a tree".to_owned()));
        assert_eq!(ask("who?"), Some("nobody".to_owned()));
        assert_eq!(ask("x"), None);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("What is it"), "{text}");
    }

    #[test]
    fn questions_are_compared_as_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("answers.jsonl");
        let exact = Comparison { case_sensitive: true, keep_blanks: true };
        keep(&file, "A", "1", exact).unwrap();
        for (question, comparison, found) in
            [("A", exact, true), ("a", exact, false), ("A ", exact, false), ("A", Comparison::default(), false)]
        {
            assert_eq!(answer(&file, question, comparison).unwrap().is_some(), found, "{question:?}");
        }
    }

    #[test]
    fn a_full_file_keeps_the_newest_answers() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("answers.jsonl");
        let lines = (0..ANSWERS).map(|number| Line {
            question: digest(&number.to_string(), Comparison::default()),
            answer: "old".to_owned(),
            time: String::new(),
        });
        let text: Vec<u8> = lines.flat_map(|line| written(&line).unwrap()).chain(*b"{cut short\n").collect();
        std::fs::write(&file, text).unwrap();
        keep(&file, "new", "newest", Comparison::default()).unwrap();
        let ask = |question: &str| answer(&file, question, Comparison::default()).unwrap();
        assert_eq!(ask("new").as_deref(), Some("newest"));
        assert_eq!(ask(&(ANSWERS - 1).to_string()).as_deref(), Some("old"));
        assert_eq!(ask("0"), None);
    }
}
