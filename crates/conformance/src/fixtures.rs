//! What vectors of builtins need around them: a `$NAME` in one stands for something that is made here.
//!
//! `$PORT` is a server on loopback that keeps what it is asked; a name that ends in `PAT`, `TOKEN`, `KEY` or `SECRET` is
//! a secret of that kind; any other name is an empty folder. A note that says `$DIR/file = "text"` fills it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Secrets by a word of their name: what they begin with, and how many characters follow. The last one is any other.
const SECRETS: &[(&str, &str, usize)] = &[
    ("DOCKER", "dckr_pat_", 27),
    ("GITLAB", "glpat-", 20),
    ("NPM", "npm_", 36),
    ("SLACK", "xoxb-123456789012-1234567890123-", 24),
    ("ANTHROPIC", "sk-ant-api03-", 95),
    ("GITHUB", "ghp_", 36),
    ("", "ghp_", 36),
];

/// Everything around one vector.
pub(crate) struct Fixtures {
    folder: TempDir,
    values: BTreeMap<String, String>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Fixtures {
    /// What the names in `vector` (all of it) stand for, filled as its notes say.
    pub(crate) fn new(vector: &str, notes: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(failed)?;
        let mut fixtures = Self { folder, values: BTreeMap::new(), requests: Arc::default() };
        for name in names(vector).chain(names(notes)).collect::<BTreeSet<_>>() {
            let value = fixtures.value(name).map_err(failed)?;
            fixtures.values.insert(name.to_owned(), value);
        }
        for (path, text) in files(notes) {
            let path = PathBuf::from(fixtures.text(path));
            path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
            std::fs::write(path, text).map_err(failed)?;
        }
        for name in ["tmp", "home", "state"] {
            std::fs::create_dir_all(fixtures.folder.path().join(name)).map_err(failed)?;
        }
        Ok(fixtures)
    }

    fn value(&self, name: &str) -> std::io::Result<String> {
        if name.ends_with("PORT") {
            return serve(Arc::clone(&self.requests)).map(|port| port.to_string());
        }
        if ["PAT", "TOKEN", "KEY", "SECRET"].iter().any(|end| name.ends_with(end)) {
            return Ok(secret(name));
        }
        let folder = self.folder.path().join("folders").join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder.canonicalize()?.display().to_string())
    }

    /// Variables that lead builtins into the fixtures instead of this machine's folders.
    pub(crate) fn env(&self) -> BTreeMap<String, String> {
        let folder = |name| self.folder.path().join(name).display().to_string();
        let home = self.values.get("HOME").cloned().unwrap_or_else(|| folder("home"));
        let all = [("TMPDIR", folder("tmp")), ("HOME", home), ("XDG_STATE_HOME", folder("state"))];
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// A value with the fixtures in it. Folders that it names below a fixture are made.
    pub(crate) fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let filled = self.text(text);
                if filled != *text && Path::new(&filled).starts_with(self.folder.path()) && !Path::new(&filled).exists()
                {
                    // Where a file is meant, its folder has been made with it.
                    let _ = std::fs::create_dir_all(&filled);
                }
                filled.into()
            }
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, value)| (self.text(key), self.fill(value))).collect(),
            other => other.clone(),
        }
    }

    /// A value with the fixtures in it, of which nothing is made.
    pub(crate) fn named(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.named(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), self.named(value))).collect(),
            other => other.clone(),
        }
    }

    /// A text with the fixtures in it; the longest name first, since one may begin with another.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut names: Vec<_> = self.values.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        names.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    /// What the server was asked since the last time.
    pub(crate) fn requests(&self) -> Vec<Value> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Every file that was left below the temporary folder.
    pub(crate) fn temporary_files(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.path().join("tmp")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        files
    }
}

/// The names behind `$` in a text: capital letters, digits and underscores.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let end = rest.find(|char: char| !(char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_'));
        rest.get(..end.unwrap_or(rest.len())).filter(|name| name.starts_with(|char: char| char.is_ascii_uppercase()))
    })
}

/// The files that notes describe: `$DIR/a = "text"`.
fn files(notes: &str) -> impl Iterator<Item = (&str, &str)> {
    notes.match_indices('$').filter_map(|(at, _)| {
        let (path, rest) = notes.get(at..)?.split_once('=')?;
        let path = path.trim_end();
        let text = rest.trim_start().strip_prefix('"')?.split('"').next()?;
        (!path.contains(char::is_whitespace) && path.contains('/')).then_some((path, text))
    })
}

/// A text that looks like a secret, and is none.
fn secret(name: &str) -> String {
    const LETTERS: &[u8] = b"x7Qm2Vd9Kc4Zt8Rb5Hn3Wj6Lp1Yf0GsTaUeBiNoCu";
    let (_, prefix, length) = SECRETS.iter().find(|(word, ..)| name.contains(word)).unwrap_or(&("", "ghp_", 36));
    let letters = LETTERS.iter().cycle().take(*length).map(|letter| char::from(*letter));
    format!("{prefix}{}", letters.collect::<String>())
}

/// Answers everything with 200, on a thread that ends with this program.
fn serve(requests: Arc<Mutex<Vec<Value>>>) -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if let Some(request) = read(&mut stream) {
                requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    Ok(port)
}

fn read(stream: &mut TcpStream) -> Option<Value> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).ok()?;
        text.push_str(&String::from_utf8_lossy(buffer.get(..count)?));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return None;
            }
            continue;
        };
        let header = |name: &str| {
            let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
            lines.into_iter().find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned()))
        };
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if count == 0 || body.len() >= length {
            let mut first = head.split(' ');
            let (method, path) = (first.next()?, first.next()?);
            return Some(json!({"method": method, "path": path, "body": body, "content_type": header("content-type")}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_what_is_made() {
        let fixtures =
            Fixtures::new("$DIR/x $GITHUB_PAT $repeat $5", "fixture: $DIR/a.md = \"text\", and more").unwrap();
        assert_eq!(fixtures.values.keys().collect::<Vec<_>>(), ["DIR", "GITHUB_PAT"]);
        assert_eq!(std::fs::read_to_string(fixtures.text("$DIR/a.md")).unwrap(), "text");
        assert!(fixtures.text("$GITHUB_PAT").starts_with("ghp_"));
        let filled = fixtures.fill(&json!({"cwd": "$DIR/deep/er"}));
        assert!(Path::new(filled["cwd"].as_str().unwrap()).is_dir());
    }
}
