//! What `setup` hooks write: variables that a shell could have been given, or problems that do not repeat a value.

#![no_main]

use gatehook_engine::env_file::{MAX_COUNT, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| match read(data) {
    Ok(variables) => {
        assert!(variables.len() <= MAX_COUNT);
        for name in variables.keys() {
            assert!(
                !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_'),
                "{name:?}"
            );
            assert!(!["PATH", "HOME", "BASH_ENV"].contains(&name.as_str()), "{name}");
            assert!(!["LD_", "GATEHOOK_", "GIT_"].iter().any(|prefix| name.starts_with(prefix)), "{name}");
        }
        assert!(variables.values().all(|value| !value.contains(['\0', '\n'])), "{variables:?}");
        let written: String = variables.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
        assert_eq!(read(written.as_bytes()), Ok(variables), "{written:?}");
    }
    Err(problems) => {
        assert!(!problems.is_empty());
        assert!(problems.iter().all(|problem| !problem.contains(char::is_control)), "{problems:?}");
        if let Ok(text) = str::from_utf8(data) {
            let masked: Vec<String> = text.split('\n').map(masked).collect();
            assert_eq!(read(masked.join("\n").as_bytes()), Err(problems), "of another value");
        }
    }
});

/// A line with another value of the same length; a NUL stays one.
fn masked(line: &str) -> String {
    let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.trim_start().starts_with('#')) else {
        return line.to_owned();
    };
    let mask = |byte| if byte == b'\0' { '\0' } else { 'x' };
    format!("{name}={}", value.bytes().map(mask).collect::<String>())
}
