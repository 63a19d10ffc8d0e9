//! What a script takes in from other files, read from its text without running it. It finds more than is taken in where
//! it cannot tell, and it does not find what a script only names while it runs.

/// Something that a script takes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Import {
    /// A module of Python by its dotted name, from as many folders up as it has leading dots.
    Module {
        /// 0 for one that is looked up in the import roots.
        up: usize,
        /// Its parts; empty in `from . import x` but for the names.
        parts: Vec<String>,
    },
    /// A path, from the script's folder.
    Path(String),
}

/// How a kind of script is read.
type Reader = fn(&str) -> Vec<Import>;

/// By extension. To read another language, add a row.
const READERS: &[(&[&str], Reader)] =
    &[(&["py", "pyw"], python), (&["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"], javascript), (SHELL, shell)];

const SHELL: &[&str] = &["sh", "bash", "zsh", "dash", "ksh"];

/// What a script of this name and text takes in.
pub(super) fn imports(name: &str, text: &str) -> Vec<Import> {
    let first = text.lines().next().unwrap_or_default();
    let by_first_line = || {
        let interpreter = first.strip_prefix("#!")?;
        let readers: [(&str, Reader); 3] = [("python", python), ("node", javascript), ("sh", shell)];
        readers.into_iter().find(|(program, _)| interpreter.contains(program)).map(|(_, reader)| reader)
    };
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    let by_extension = READERS.iter().find(|(known, _)| known.contains(&extension.as_str())).map(|(_, reader)| *reader);
    by_extension.or_else(by_first_line).map(|reader| reader(text)).unwrap_or_default()
}

/// `import a.b, c`, `from a import b, c`, `import_module("a.b")`, `__import__("a")`; in strings and comments too.
fn python(text: &str) -> Vec<Import> {
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut found = Vec::new();
    for statement in text.split(['\n', ';', ':']) {
        let statement = statement.trim_start();
        if let Some(names) = keyword(statement, "import") {
            for name in names.split(',') {
                found.extend(module(first_word(name)));
            }
        } else if let Some(rest) = keyword(statement, "from") {
            found.extend(from(rest));
        }
    }
    // The names of `from a import (` may stand on lines of their own.
    for (at, _) in text.match_indices("import (").chain(text.match_indices("import(")) {
        let before = text.get(..at).and_then(|before| before.lines().next_back()).unwrap_or_default();
        let names = text.get(at..).and_then(|rest| rest.split_once('(')).map(|(_, rest)| rest);
        let names = names.and_then(|rest| rest.split(')').next()).unwrap_or_default();
        if let Some(base) = keyword(before.trim_start(), "from") {
            let names = names.lines().map(|line| line.split('#').next().unwrap_or_default()).collect::<Vec<_>>();
            found.extend(from(&format!("{base} import {}", names.join(" "))));
        }
    }
    for call in ["import_module", "__import__", "run_module", "run_path"] {
        for (at, _) in text.match_indices(call) {
            let argument = text.get(at + call.len()..).unwrap_or_default().trim_start_matches([' ', '(']);
            found.extend(string(argument).and_then(|name| module(&name)));
        }
    }
    found
}

/// What stands behind a word that a statement begins with.
fn keyword<'a>(statement: &'a str, word: &str) -> Option<&'a str> {
    statement.strip_prefix(word).filter(|rest| rest.starts_with([' ', '\t', '.', '(']))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// `a.b import c, d as e`: `a.b`, `a.b.c` and `a.b.d`.
fn from(rest: &str) -> Vec<Import> {
    let (base, names) = rest.split_once("import").unwrap_or((rest, ""));
    let base = base.trim();
    let up = base.chars().take_while(|char| *char == '.').count();
    let parts: Vec<String> = dotted(base.trim_start_matches('.')).unwrap_or_default();
    if parts.is_empty() && up == 0 {
        return Vec::new();
    }
    let mut found = vec![Import::Module { up, parts: parts.clone() }];
    for name in names.trim_matches(['(', ')', ' ']).split(',') {
        if let Some(name) = dotted(first_word(name.trim_matches(['(', ')', ' ', '\t', '\r']))) {
            found.push(Import::Module { up, parts: parts.iter().cloned().chain(name).collect() });
        }
    }
    found
}

fn module(name: &str) -> Option<Import> {
    let up = name.chars().take_while(|char| *char == '.').count();
    Some(Import::Module { up, parts: dotted(name.trim_start_matches('.').trim_end_matches([')', ',']))? })
}

/// The parts of a dotted name; `None` for what is none.
pub(super) fn dotted(name: &str) -> Option<Vec<String>> {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let parts: Vec<&str> = name.split('.').collect();
    parts.iter().all(|part| is_part(part)).then(|| parts.into_iter().map(str::to_owned).collect())
}

/// A string literal that a text begins with.
fn string(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|char| matches!(char, '"' | '\'' | '`'))?;
    let inside = text.get(1..)?;
    Some(inside.split_once(quote)?.0.to_owned())
}

/// `require("./x")`, `import("./x")`, `import … from "./x"`, `import "./x"`, `export … from "./x"`.
fn javascript(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for opener in ["require", "import", "from", "resolve"] {
        for (at, _) in text.match_indices(opener) {
            let argument = text.get(at + opener.len()..).unwrap_or_default();
            let argument = argument.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
            found.extend(string(argument).filter(|path| path.starts_with(['.', '/'])).map(Import::Path));
        }
    }
    found
}

/// `. FILE`, `source FILE`, and whatever else is a script by its name.
fn shell(text: &str) -> Vec<Import> {
    let words = super::words::split(text);
    let mut sourced = false;
    let mut found = Vec::new();
    for word in &words {
        let literal = word.literal().unwrap_or_default();
        let tail = match word.pieces.last() {
            Some(super::words::Piece::Text(tail)) => tail.as_str(),
            _ => "",
        };
        // "$(dirname "$0")/lib.sh": what follows is from the script's folder, as a rule.
        let path = if literal.is_empty() { tail.trim_start_matches('/') } else { literal };
        if !word.is_output && !path.is_empty() && (sourced || is_script(path)) {
            found.push(Import::Path(path.to_owned()));
        }
        sourced = matches!(literal, "." | "source");
    }
    found
}

fn is_script(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    READERS.iter().any(|(known, _)| known.contains(&extension))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(name: &str, text: &str) -> Vec<String> {
        let show = |import: Import| match import {
            Import::Module { up, parts } => format!("{}{}", ".".repeat(up), parts.join(".")),
            Import::Path(path) => path,
        };
        let mut shown: Vec<String> = imports(name, text).into_iter().map(show).collect();
        shown.sort();
        shown.dedup();
        shown
    }

    #[test]
    fn python_imports_are_found() {
        for (text, found) in [
            ("import os, a.b as c\n", vec!["a.b", "os"]),
            ("from a import b, c as d", vec!["a", "a.b", "a.c"]),
            ("from . import x\nfrom ..p.q import y", vec![".", ".x", "..p.q", "..p.q.y"]),
            ("if x:\n    import inner; import other", vec!["inner", "other"]),
            ("try: import fast\nexcept: pass", vec!["fast"]),
            ("from a import (\n  b,  # why\n  c,\n)", vec!["a", "a.b", "a.c"]),
            ("from a \\\n  import b", vec!["a", "a.b"]),
            ("m = importlib.import_module('p.q')\n__import__(\"r\")", vec!["p.q", "r"]),
            ("important = 1\nfrom_here = 2", vec![]),
        ] {
            let mut expected = found;
            expected.sort_unstable();
            assert_eq!(shown("x.py", text), expected, "{text}");
        }
    }

    #[test]
    fn scripts_of_other_languages_are_read_by_extension_or_first_line() {
        assert_eq!(
            shown("x.js", "const a = require('./a'); import b from \"../b.mjs\"; import 'fs'"),
            ["../b.mjs", "./a"]
        );
        assert_eq!(shown("x", "#!/usr/bin/env node\nimport('./c.js')"), ["./c.js"]);
        assert_eq!(
            shown("x.sh", ". ./lib\nsource \"$(dirname \"$0\")/more\"\npython3 run.py"),
            ["./lib", "more", "run.py"]
        );
        assert_eq!(shown("x", "#!/usr/bin/env python3\nimport a"), ["a"]);
        assert_eq!(shown("x.txt", "import a"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(import|from|[ a-z.,()'\"\\\\\n;:é$#]){0,60}", name in "x\\.(py|js|sh)") {
            imports(&name, &text);
        }
    }
}
