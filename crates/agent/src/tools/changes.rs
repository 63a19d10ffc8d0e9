//! What a tool changed, for people.

use std::time::{Duration, Instant};

use similar::{Algorithm, TextDiff};

/// Bytes that a file may be given.
pub(super) const CONTENT: usize = 16 << 20;
/// Bytes of each side that are compared.
const COMPARED: usize = 1 << 20;
/// Bytes of a diff.
const SHOWN: usize = 64 << 10;
/// How long lines are compared; after that the diff is right, but longer than it had to be.
const PATIENCE: Duration = Duration::from_millis(500);

/// How `old` became `new`, as a unified diff; `None` where nothing changed.
pub(super) fn diff(name: &str, old: &[u8], new: &[u8]) -> Option<String> {
    if old == new {
        return None;
    }
    let header = |text: &str| format!("--- a/{name}\n+++ b/{name}\n{text}\n");
    if old.len().max(new.len()) > COMPARED {
        return Some(header(&format!("(too long to compare: {} and {} bytes)", old.len(), new.len())));
    }
    if [old, new].iter().any(|side| side.contains(&0)) {
        return Some(header("(binary)"));
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let lines = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .deadline(Instant::now() + PATIENCE)
        .diff_lines(old.as_ref(), new.as_ref());
    let mut shown =
        lines.unified_diff().context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string();
    if shown.len() > SHOWN {
        let cut = shown.floor_char_boundary(SHOWN);
        let end = shown.get(..cut).and_then(|kept| kept.rfind('\n')).map_or(cut, |end| end + 1);
        let left = shown.len() - end;
        shown.truncate(end);
        shown.push_str(&format!("({left} more bytes of changes)\n"));
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_what_stands_around_them() {
        let shown = diff("a.txt", b"1\n2\n3\n", b"1\nzwei\n3\n").unwrap();
        assert_eq!(shown, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n");
        assert_eq!(diff("a.txt", b"1\n", b"1\n"), None);
        let new = diff("a.txt", b"", b"x").unwrap();
        assert!(new.contains("+x\n\\ No newline at end of file"), "{new}");
        assert!(diff("a", b"\0", b"x").unwrap().ends_with("(binary)\n"));
    }

    #[test]
    fn a_long_diff_is_cut_at_a_line() {
        let new: String = (0..20_000).map(|number| format!("line {number} ü\n")).collect();
        let shown = diff("a", b"", new.as_bytes()).unwrap();
        assert!(shown.len() < SHOWN + 100 && shown.ends_with("more bytes of changes)\n"));
        let long = "x\n".repeat(COMPARED);
        assert!(diff("a", b"", long.as_bytes()).unwrap().contains("too long to compare"));
    }
}
