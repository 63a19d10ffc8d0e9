//! Patterns of matchers and conditions, checked at load as dispatch will compile them: RE2's syntax by the `regex`
//! crate, anchored at both ends; globs for paths.

use std::ops::Range;

use gatehook_events::Subject;
use regex_automata::nfa::thompson;

use crate::matcher;

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PatternError {
    /// What is wrong, in a sentence fragment.
    pub(crate) message: String,
    /// Where in the pattern, in bytes.
    pub(crate) span: Range<usize>,
}

/// Bytes of a compiled pattern.
const MAX_SIZE: usize = 1024 * 1024;

/// Whether a pattern over `subject` can be used.
pub(crate) fn check(pattern: &str, subject: Option<Subject>) -> Result<(), PatternError> {
    let whole = |message: String| PatternError { message, span: 0..pattern.len() };
    if subject != Some(Subject::Path) {
        let hir = regex_syntax::Parser::new().parse(&matcher::respelled(pattern)).map_err(|error| {
            // The place is one in the pattern as it is written, as far as it is wrong there too.
            let written = regex_syntax::Parser::new().parse(pattern).err();
            written.map_or_else(|| whole(from_syntax(&error).message), |error| from_syntax(&error))
        })?;
        let config = thompson::Config::new().nfa_size_limit(Some(MAX_SIZE));
        let compiled = thompson::Compiler::new().configure(config).build_from_hir(&hir);
        compiled.map_err(|_| whole("it is too large".to_owned()))?;
    }
    matcher::anchored(pattern, subject).map(drop).map_err(|error| whole(error.message))
}

fn from_syntax(error: &regex_syntax::Error) -> PatternError {
    match error {
        regex_syntax::Error::Parse(error) => of(error.kind(), error.span()),
        regex_syntax::Error::Translate(error) => of(error.kind(), error.span()),
        error => PatternError { message: error.to_string(), span: 0..0 },
    }
}

fn of(kind: &impl ToString, span: &regex_syntax::ast::Span) -> PatternError {
    PatternError { message: kind.to_string(), span: span.start.offset..span.end.offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_pattern_names_its_place() {
        for (pattern, span) in [("(", 0..1), ("a|[z-a]", 3..6), ("shell|*", 6..6), ("a)|(b", 1..2), ("(?=x)", 0..3)] {
            assert_eq!(check(pattern, None).unwrap_err().span, span, "{pattern}");
        }
        assert_eq!(check(r"(\w{500}){500}", None).unwrap_err().message, "it is too large");
    }

    #[test]
    fn what_dispatch_cannot_anchor_is_refused() {
        for (pattern, subject, is_good) in [
            (r"mcp__\w{1,16}__(?i:read|list)_.*", Subject::Tool, true),
            ("(?x) a # b", Subject::Tool, false),
            ("**/*.{rs,toml}", Subject::Path, true),
            ("*.[", Subject::Path, false),
        ] {
            assert_eq!(check(pattern, Some(subject)).is_ok(), is_good, "{pattern}");
        }
    }
}
