//! Shell lines and scripts, as the guards read them: nothing that stands in a line is overlooked.
//!
//! The first byte is `0` for a line, `1` to `3` for a script of Python, JavaScript, sh.

#![no_main]

use gatehook_engine::trust::{imports, words};
use libfuzzer_sys::fuzz_target;

/// How deep commands in commands are read for sure.
const DEPTH: usize = 8;

const NAMES: [&str; 3] = ["a.py", "a.mjs", "a.sh"];

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    match usize::from(first.wrapping_sub(b'0')) % (NAMES.len() + 1) {
        0 => line(&text),
        at => {
            let name = NAMES[at - 1];
            // What stands before cannot hide what is taken in by a line of its own, but for a string or comment that is
            // open: those are read, too.
            assert!(imports(name, &text) <= text.len(), "{name} takes in more than it says");
        }
    }
});

/// Each run of letters and digits is in some word, unless it stands too deep to be read.
fn line(line: &str) {
    let words = words(line);
    if line.matches(['(', '{', '`']).count() > DEPTH {
        return;
    }
    for run in line.split(|char: char| !char.is_ascii_alphanumeric()).filter(|run| !run.is_empty()) {
        assert!(words.iter().any(|word| word.contains(run)), "{run:?} of {line:?} is in none of {words:?}");
    }
}
