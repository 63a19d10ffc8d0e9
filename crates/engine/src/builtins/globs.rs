//! Lists of patterns over paths, in the language of `.gitignore` (<https://git-scm.com/docs/gitignore>): the last one that
//! fits decides, `!` takes out again, a pattern without an inner `/` fits at any depth, and what fits a folder fits all
//! that is in it.

use regex::{Regex, RegexBuilder};

/// A list of patterns, compiled.
#[derive(Debug, Default)]
pub(crate) struct Globs {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    regex: Regex,
    takes_out: bool,
}

/// Bytes of a list that are read.
pub(crate) const LIST_LIMIT: usize = 256 << 10;

impl Globs {
    /// A list that matches in any case or in the very one. What is wrong with a pattern names it.
    pub(crate) fn new<'p>(patterns: impl IntoIterator<Item = &'p str>, any_case: bool) -> Result<Self, String> {
        let rules = patterns.into_iter().map(|pattern| rule(pattern, any_case));
        Ok(Self { rules: rules.filter_map(Result::transpose).collect::<Result<_, _>>()? })
    }

    /// The list in a file's text; comments and empty lines say nothing, and neither does what is no pattern.
    pub(crate) fn of_lines(text: &str) -> Self {
        let lines = text.lines().map(|line| if line.starts_with('#') { "" } else { line });
        Self { rules: lines.filter_map(|line| rule(line, false).ok().flatten()).collect() }
    }

    /// Whether the list has this path, written with `/` and relative to where the list is.
    pub(crate) fn has(&self, path: &str) -> bool {
        let last = self.rules.iter().rev().find(|rule| rule.regex.is_match(path));
        last.is_some_and(|rule| !rule.takes_out)
    }
}

/// `None` for a line that says nothing.
fn rule(pattern: &str, any_case: bool) -> Result<Option<Rule>, String> {
    let trimmed = pattern.trim_end();
    let (takes_out, body) = match trimmed.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('\\').filter(|rest| rest.starts_with(['!', '#'])).unwrap_or(trimmed)),
    };
    // A folder's pattern fits what is in the folder, and a list of files is asked about files.
    let (body, folder) = body.strip_suffix('/').map_or((body, false), |body| (body, true));
    if body.is_empty() {
        return Ok(None);
    }
    let anchored = body.contains('/') && !body.starts_with("**/");
    let below = if folder { "/.*" } else { "(?:/.*)?" };
    let start = if anchored { "" } else { "(?:.*/)?" };
    let expression = format!("^{start}{}{below}$", expression(body.trim_start_matches('/')));
    let regex = RegexBuilder::new(&expression).case_insensitive(any_case).dot_matches_new_line(true).build();
    let regex = regex.map_err(|_| format!("`{}` is no pattern of paths", pattern.escape_debug()))?;
    Ok(Some(Rule { regex, takes_out }))
}

/// A glob as an expression: `*` and `?` stay within a part of the path, `**` does not.
pub(super) fn expression(glob: &str) -> String {
    let mut expression = String::with_capacity(glob.len() * 2);
    let mut rest = glob;
    while let Some(char) = rest.chars().next() {
        let (length, piece) = if rest.starts_with("**/") {
            (3, "(?:.*/)?".to_owned())
        } else if rest.starts_with("**") {
            (2, ".*".to_owned())
        } else {
            match char {
                '*' => (1, "[^/]*".to_owned()),
                '?' => (1, "[^/]".to_owned()),
                '[' => class(rest).unwrap_or((1, "\\[".to_owned())),
                '\\' => {
                    let next = rest.chars().nth(1).unwrap_or('\\');
                    (1 + rest.get(1..).map_or(0, |_| next.len_utf8()), regex::escape(next.encode_utf8(&mut [0; 4])))
                }
                other => (other.len_utf8(), regex::escape(other.encode_utf8(&mut [0; 4]))),
            }
        };
        expression.push_str(&piece);
        rest = rest.get(length..).unwrap_or_default();
    }
    expression
}

/// `[a-z]`, `[!a]`: how long it is, and the expression.
fn class(rest: &str) -> Option<(usize, String)> {
    let inside = rest.strip_prefix('[')?;
    let first = usize::from(inside.starts_with(['!', '^']));
    // A bracket that comes first stands for itself.
    let from = first + usize::from(inside.get(first..)?.starts_with(']'));
    let end = from + inside.get(from..)?.find(']')?;
    let members = inside.get(first..end)?.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
    let members = members.replace('&', "\\&").replace('~', "\\~").replace('^', "\\^");
    Some((end + 2, format!("[{}{members}]", if first == 1 { "^/" } else { "" })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_fits_as_in_gitignore() {
        for (pattern, path, fits) in [
            (".env*", ".env.local", true),
            (".env*", "deep/er/.env", true),
            (".env*", "x.env", false),
            ("*.pem", "a/b.pem", true),
            ("/top", "top/x", true),
            ("/top", "a/top", false),
            ("a/b", "a/b/c", true),
            ("a/b", "x/a/b", false),
            ("**/b", "x/a/b", true),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("dir/", "dir/x", true),
            ("dir/", "x/dir/y", true),
            ("dir/", "dir", false),
            ("f?o", "foo", true),
            ("f?o", "f/o", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[!a-c]x", "dx", true),
            ("a[", "a[", true),
            ("\\!x", "!x", true),
        ] {
            assert_eq!(Globs::new([pattern], false).unwrap().has(path), fits, "{pattern} on {path}");
        }
    }

    #[test]
    fn the_last_pattern_that_fits_decides() {
        let globs = Globs::of_lines("# what\n*.md\n!KEEP.md\n\ndocs/KEEP.md\n");
        for (path, has) in [("a.md", true), ("x/KEEP.md", false), ("docs/KEEP.md", true), ("what", false)] {
            assert_eq!(globs.has(path), has, "{path}");
        }
    }

    #[test]
    fn case_counts_unless_it_is_told_not_to() {
        assert!(Globs::new([".ENV"], true).unwrap().has("a/.Env"));
        assert!(!Globs::new([".ENV"], false).unwrap().has("a/.Env"));
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in r"[\[\]!*?a\\/^&~-]{0,12}|.*", path in ".*") {
            Globs::of_lines(&line).has(&path);
            drop(Globs::new([line.as_str()], true));
        }

        #[test]
        fn a_plain_name_fits_itself(name in "[a-zA-Z0-9._-]{1,12}") {
            prop_assert!(Globs::new([name.as_str()], false).unwrap().has(&name), "{name}");
        }
    }
}
