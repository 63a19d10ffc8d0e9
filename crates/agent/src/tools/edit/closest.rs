//! What somebody may have meant whose text is not there.

/// Lines of a file that are looked at, and characters of each.
const LINES: usize = 20_000;
const WIDTH: usize = 200;
/// How like a line must be, of 1.
const LIKE: f64 = 0.5;

/// Where the text `content` is most like `old`, and how it differs there.
pub(super) fn told(content: &str, old: &str) -> String {
    let wanted: Vec<&str> = old.lines().collect();
    let Some(skipped) = wanted.iter().position(|line| !line.trim().is_empty()) else {
        return "It is white space alone: take in a line with text.".to_owned();
    };
    let lines: Vec<&str> = content.lines().take(LINES).collect();
    let sought = wanted.get(skipped).copied().unwrap_or_default();
    let Some(start) = start(&lines, sought, wanted.get(skipped..).unwrap_or_default()) else {
        return "No line is like its first one: read the file again.".to_owned();
    };
    // The first line that is not as it was given says why.
    let pairs = wanted.iter().skip(skipped).zip(lines.iter().skip(start)).enumerate();
    let differing = pairs.into_iter().find(|(_, (wanted, there))| wanted != there);
    match differing {
        Some((offset, (wanted, there))) => {
            let number = start + offset + 1;
            let how = if wanted.trim() == there.trim() { " (only white space differs)" } else { "" };
            format!("The closest is line {number}{how}:\n{number:>6}\t{}", cut(there))
        }
        None if lines.len() - start < wanted.len() - skipped => {
            format!("The closest begins at line {}, but the file ends before it does.", start + 1)
        }
        None => format!("The closest begins at line {}, but what ends its lines differs.", start + 1),
    }
}

/// The line that `sought` is most like; of several that are as like, the one where more of `wanted` follows.
fn start(lines: &[&str], sought: &str, wanted: &[&str]) -> Option<usize> {
    let sought_trimmed = cut(sought.trim());
    let score = |line: &str| {
        let line = line.trim();
        if line == sought.trim() { 1.0 } else { strsim::sorensen_dice(&cut(line), &sought_trimmed) }
    };
    let following = |at: usize| {
        let there = lines.iter().skip(at).map(|line| line.trim());
        there.zip(wanted.iter().map(|line| line.trim())).filter(|(there, wanted)| there == wanted).count()
    };
    let mut best: Option<(f64, usize, usize)> = None;
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let score = score(line);
        if score < LIKE || best.is_some_and(|(most, _, _)| score < most) {
            continue;
        }
        let following = following(at);
        if best.is_none_or(|(most, as_many, _)| score > most || following > as_many) {
            best = Some((score, following, at));
        }
    }
    best.map(|(_, _, at)| at)
}

fn cut(line: &str) -> String {
    line.chars().take(WIDTH).collect()
}
