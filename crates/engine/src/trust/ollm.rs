//! OLLM's own approvals, `~/.ollm/trusted-hooks.json`: read and honoured for its hooks, and written so that it can read
//! them.
//!
//! An approval there is of a file by its bytes, or of a command by its words. It counts here where that is all there is
//! to the hook: the hash of a script says nothing of its arguments, and that of a command nothing of its script.

use serde_json::{Value, json};

use super::content::digest;
use super::kept::{Kept, KeptFile};

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// A file's path, or `SOURCE:EXTENSION:ID` with `none` for no extension.
    pub source: String,
    /// As in `sha256:0123…`.
    pub hash: String,
}

/// The file as it stands: what is not understood is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Approvals {
    file: Value,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { file: json!({"version": 1, "approvals": []}) }
    }
}

impl Approvals {
    /// Reads a file's bytes. Any version will do: OLLM does not look at it either.
    ///
    /// ```
    /// use gatehook_engine::trust::ollm::{Approvals, command_hash};
    ///
    /// let hash = command_hash("node", &["check.js"], "workspace", None);
    /// let file = format!(r#"{{"version":1,"approvals":[{{"source":"workspace:none:check","hash":"{hash}"}}]}}"#);
    /// let approvals = Approvals::parse(file.as_bytes()).unwrap();
    /// assert!(approvals.has("workspace:none:check", &hash));
    /// assert!(Approvals::parse(b"{}").is_err());
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match file.get("approvals") {
            Some(Value::Array(_)) => Ok(Self { file }),
            _ => Err("it has no list of `approvals`".to_owned()),
        }
    }

    /// The same as a file's bytes.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.file).unwrap_or_default()
    }

    /// Whether this content of this source was approved.
    pub fn has(&self, source: &str, hash: &str) -> bool {
        self.all().any(|approval| approval.source == source && approval.hash == hash)
    }

    fn all(&self) -> impl Iterator<Item = Approval> {
        let all = self.file.get("approvals").and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|it| Some(Approval { source: text(it, "source")?, hash: text(it, "hash")? }))
    }

    /// Adds an approval, in the place of one of the same source.
    pub fn add(&mut self, approval: &Approval, at: &str, by: &str) {
        self.remove(&approval.source);
        if let Some(all) = self.file.get_mut("approvals").and_then(Value::as_array_mut) {
            let Approval { source, hash } = approval;
            all.push(json!({"source": source, "hash": hash, "approvedAt": at, "approvedBy": by}));
        }
    }

    /// Drops the approvals of a source.
    pub fn remove(&mut self, source: &str) {
        if let Some(all) = self.file.get_mut("approvals").and_then(Value::as_array_mut) {
            all.retain(|it| text(it, "source").as_deref() != Some(source));
        }
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// The hash of a file's bytes.
pub fn file_hash(bytes: &[u8]) -> String {
    digest(bytes)
}

/// The hash of a command: of `{"command","args","source"[,"extensionName"]}` as compact JSON in this order.
pub fn command_hash<S: AsRef<str>>(command: &str, args: &[S], source: &str, extension: Option<&str>) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let args: Vec<String> = args.iter().map(|arg| quoted(arg.as_ref())).collect();
    let mut object =
        format!(r#"{{"command":{},"args":[{}],"source":{}"#, quoted(command), args.join(","), quoted(source));
    if let Some(extension) = extension {
        object.push_str(&format!(r#","extensionName":{}"#, quoted(extension)));
    }
    digest((object + "}").as_bytes())
}

/// The file.
pub type Store = KeptFile<Approvals>;

impl Kept for Approvals {
    const MAX_FILE: u64 = 16 << 20;

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        Self::parse(bytes)
    }

    fn to_json(&self) -> String {
        self.to_json()
    }
}
