//! What `setup` hooks leave to later hooks of their project: a line `KEY=value` for each variable.
//!
//! Who may write variables may not weaken a guard by them: none of them says which program runs, what it loads, or which
//! hooks are in force.

use std::collections::BTreeMap;

/// Bytes that hooks may write.
pub const MAX_BYTES: usize = 64 << 10;
/// Variables that they may leave.
pub const MAX_COUNT: usize = 256;

/// Names that a setup hook cannot set.
const REFUSED: &[&str] = &[
    "PATH",
    "PWD",
    "HOME",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "CDPATH",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "VIRTUAL_ENV",
    "GCONV_PATH",
    "TMPDIR",
];
/// The same for all names that begin so.
const REFUSED_PREFIXES: &[&str] =
    &["LD_", "DYLD_", "GATEHOOK_", "OLLAMA_", "PYTHON", "GIT_", "BASH_FUNC_", "XDG_", "LC_"];
/// The same for all that end so: hooks are found below them.
const REFUSED_ENDING: &str = "_PROJECT_DIR";

/// Reads variables; the last of one name stands. Empty lines and those with `#` first say nothing, a leading `export`
/// neither, and quotes around a whole value are taken off. Nothing is expanded. If anything is wrong there are no
/// variables but all problems, a line each; they do not repeat values.
///
/// ```
/// use gatehook_engine::env_file;
///
/// let variables = env_file::read(b"export REGION='eu west'\n# a comment\n").unwrap();
/// assert_eq!(variables["REGION"], "eu west");
/// assert_eq!(env_file::read(b"REGION").unwrap_err(), ["line 1: it has no `=`"]);
/// ```
pub fn read(bytes: &[u8]) -> Result<BTreeMap<String, String>, Vec<String>> {
    if bytes.len() > MAX_BYTES {
        return Err(vec![format!("it is larger than {MAX_BYTES} bytes")]);
    }
    let text = str::from_utf8(bytes).map_err(|_| vec!["it is not UTF-8".to_owned()])?;
    let (mut variables, mut problems) = (BTreeMap::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match variable(line.strip_prefix("export ").unwrap_or(line)) {
            Ok((name, value)) => drop(variables.insert(name.to_owned(), value.to_owned())),
            Err(problem) => problems.push(format!("line {}: {problem}", number + 1)),
        }
    }
    if variables.len() > MAX_COUNT {
        problems.push(format!("there are more than {MAX_COUNT} variables"));
    }
    if problems.is_empty() { Ok(variables) } else { Err(problems) }
}

fn variable(line: &str) -> Result<(&str, &str), String> {
    let (name, value) = line.split_once('=').ok_or("it has no `=`")?;
    let name = name.trim();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err("what stands before `=` is no name of a variable".to_owned());
    }
    if is_refused(name) {
        return Err(format!("`{name}` is not for hooks to set: it says which programs run, or which hooks do"));
    }
    if value.contains('\0') {
        return Err(format!("the value of `{name}` has a NUL"));
    }
    let value = value.trim_end();
    let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Ok((name, quoted.unwrap_or(value)))
}

fn is_refused(name: &str) -> bool {
    let begins = REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    begins || REFUSED.contains(&name) || name.ends_with(REFUSED_ENDING)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, String>, Vec<String>> {
        super::read(text.as_bytes())
    }

    #[test]
    fn lines_are_variables_as_a_shell_would_write_them() {
        let text = "A=1\n\n# B=2\nexport C='x y'\n D=\"z\" \nE=a=b\nF=\nG='\nA=3\nH=$A\r\n";
        let expected = [("A", "3"), ("C", "x y"), ("D", "z"), ("E", "a=b"), ("F", ""), ("G", "'"), ("H", "$A")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read(text).unwrap(), expected.into());
    }

    #[test]
    fn what_would_change_which_programs_run_is_refused_with_its_line_and_without_its_value() {
        for name in ["PATH", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "GATEHOOK_CONFIG", "CLAUDE_PROJECT_DIR", "GIT_DIR"]
        {
            let problems = read(&format!("A=1\n{name}=hunter2")).unwrap_err();
            assert!(
                problems.len() == 1 && problems[0].starts_with("line 2: ") && problems[0].contains(name),
                "{problems:?}"
            );
            assert!(!problems[0].contains("hunter2"));
        }
        for line in ["hunter2", "=hunter2", "1A=hunter2", "A B=hunter2", "A-B=hunter2", "A=hunter2\0"] {
            assert!(!read(line).unwrap_err()[0].contains("hunter2"), "{line:?}");
        }
    }

    #[test]
    fn what_is_too_much_or_no_text_is_no_variables() {
        let line = |number| format!("A{number}=1\n");
        assert_eq!(read(&(0..MAX_COUNT).map(line).collect::<String>()).unwrap().len(), MAX_COUNT);
        assert_eq!(read(&(0..=MAX_COUNT).map(line).collect::<String>()).unwrap_err().len(), 1);
        assert!(read(&format!("A={}", "x".repeat(MAX_BYTES - 2))).is_ok());
        assert!(read(&format!("A={}", "x".repeat(MAX_BYTES - 1))).is_err());
        assert_eq!(super::read(b"A=\xff").unwrap_err(), ["it is not UTF-8"]);
    }

    proptest! {
        #[test]
        fn any_text_is_variables_or_says_why_not(text in "([A-Z_]{0,3}[=' \"#\n\0]?[a-z=]{0,3}){0,20}") {
            if let Err(problems) = read(&text) {
                prop_assert!(!problems.is_empty());
            }
        }

        #[test]
        fn a_value_in_quotes_stays_as_it_is(value in "[^\0\n\r]{0,20}") {
            prop_assert_eq!(&read(&format!("A='{value}'")).unwrap()["A"], &value);
        }
    }
}
