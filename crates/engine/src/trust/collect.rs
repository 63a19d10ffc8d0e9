//! Finds the files that a hook names, reads them, and remembers what would have to change for it to name others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::content::{NamedFile, hexadecimal};
use super::imports::{Import, dotted, imports};
use super::project::{Place, Project};
use super::stamp::Stamp;
use super::words::{self, Piece, Word};
use crate::definition::HookDefinition;
use crate::handlers::python;

/// Files of a hook.
const MAX_FILES: usize = 512;
/// Bytes of a file.
const MAX_FILE: u64 = 64 << 20;
/// Bytes of all of them.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes of a script that is read for what it takes in.
const MAX_SCRIPT: usize = 4 << 20;
/// Bytes of a text that is kept, to show what changed.
const MAX_TEXT: usize = 64 << 10;
/// Paths that are looked up.
const MAX_LOOKUPS: usize = 20_000;
/// Entries of a folder, and folders that a hook names.
const MAX_ENTRIES: usize = 10_000;
const MAX_FOLDERS: usize = 64;

/// Types of hooks, and other things of a file, that run nothing of the project: their definition says it all.
const WITHOUT_FILES: &[&str] = &["builtin", "webhook", "model", "agent", "agent_settings"];

/// Fields that name no file.
const SILENT: &[&str] = &[
    "name",
    "type",
    "matcher",
    "when",
    "prompt",
    "model",
    "url",
    "method",
    "headers",
    "contract",
    "on_error",
    "schema",
    "stream",
    "patch",
    "cache",
    "dialect",
    "timeout",
    "description",
    "function",
];

/// What Python takes for a module of a name.
const MODULE_EXTENSIONS: &[&str] = &["py", "pyw", "pyc", "so", "pyd"];

/// What may stand for a folder that is run or required.
const FOLDER_MAINS: &[&str] = &["__main__.py", "__init__.py", "index.js", "index.mjs", "package.json"];

/// What JavaScript adds to a path that is required.
const JAVASCRIPT_ENDINGS: &[&str] = &["", ".js", ".mjs", ".cjs", ".json", ".ts", "/index.js", "/index.ts"];

/// What a hook names.
#[derive(Debug, Default)]
pub(super) struct Collected {
    files: BTreeMap<String, NamedFile>,
    pub(super) programs: BTreeSet<String>,
    pub(super) unknown: BTreeSet<String>,
    pub(super) refusals: Vec<String>,
    /// While all of these hold, the hook names the same files with the same bytes.
    pub(super) stamps: Vec<(PathBuf, Stamp)>,
}

impl Collected {
    /// What `hook` names in `project`.
    pub(super) fn of(hook: &HookDefinition, project: &Project) -> Self {
        let Some(written) = hook.written.as_deref() else { return Self::default() };
        if WITHOUT_FILES.contains(&hook.handler.kind()) {
            return Self::default();
        }
        let mut collector = Collector {
            project,
            hook,
            working_dir: project.working_dir(hook),
            folders: vec![project.working_dir(hook)],
            listed: BTreeMap::new(),
            seen: BTreeSet::new(),
            scripts: Vec::new(),
            bytes: 0,
            found: Self::default(),
        };
        if let Some(command) = hook.handler.command()
            && !command.shell
        {
            collector.path(Path::new(&command.command));
        }
        // Twice: a folder that a line names last may be where its first words lead.
        for _ in 0..2 {
            collector.value("", written);
        }
        while let Some(script) = collector.scripts.pop() {
            collector.imports(&script);
        }
        collector.found.refusals.sort();
        collector.found.refusals.dedup();
        collector.found
    }

    pub(super) fn take_files(&mut self) -> Vec<NamedFile> {
        std::mem::take(&mut self.files).into_values().collect()
    }
}

/// A script that may take in others.
struct Script {
    /// Its folder as it is named, and without links.
    folders: [PathBuf; 2],
    name: String,
    text: String,
}

struct Collector<'a> {
    project: &'a Project,
    hook: &'a HookDefinition,
    working_dir: PathBuf,
    /// The working directory, and folders that the hook names.
    folders: Vec<PathBuf>,
    listed: BTreeMap<PathBuf, Vec<String>>,
    seen: BTreeSet<PathBuf>,
    scripts: Vec<Script>,
    bytes: u64,
    found: Collected,
}

impl Collector<'_> {
    /// Every text of a definition that may name files.
    fn value(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(key, text),
            Value::Array(items) => self.items(key, items),
            Value::Object(object) => {
                object
                    .iter()
                    .filter(|(key, _)| !SILENT.contains(&key.as_str()))
                    .for_each(|(key, it)| self.value(key, it));
            }
            _ => {}
        }
    }

    fn items(&mut self, key: &str, items: &[Value]) {
        let mut before = "";
        for item in items {
            if let (Value::String(name), "-m") = (item, before) {
                self.module_name(name);
            }
            before = item.as_str().unwrap_or_default();
            self.value(key, item);
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        if key == "module" {
            self.module_name(text);
        }
        self.candidate(text, false);
        let mut after_m = false;
        for word in words::split(text) {
            if let Some(name) = word.literal().filter(|_| after_m) {
                self.module_name(name);
            }
            after_m = word.literal() == Some("-m");
            self.word(&word);
        }
    }

    fn word(&mut self, word: &Word) {
        if word.is_output {
            return;
        }
        let mut text = String::new();
        let mut is_known = true;
        for piece in &word.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Variable(name) if self.hook.env.contains_key(name) => {
                    text.push_str(self.hook.env.get(name).map(String::as_str).unwrap_or_default());
                }
                Piece::Variable(name) => match self.project.variable(name, &self.working_dir) {
                    Some(path) => text.push_str(&path.to_string_lossy()),
                    None => (is_known, text) = (false, String::new()),
                },
                Piece::Unknown => (is_known, text) = (false, String::new()),
            }
        }
        if is_known {
            return self.candidate(&text, word.is_pattern);
        }
        // What follows an unknown folder is likeliest below the project's.
        if text.contains('/') {
            self.found.unknown.insert(format!("…{text}"));
            let below = self.project.root().join(text.trim_start_matches('/'));
            self.path(&below);
        }
        self.candidate(text.trim_start_matches('/'), word.is_pattern);
    }

    /// A text that may be a path, or hold some: `--policy=a.json`, `@body.json`, `lib:more`.
    fn candidate(&mut self, text: &str, is_pattern: bool) {
        self.as_path(text, is_pattern);
        if text.contains(['=', ':', ',', '@']) {
            text.split(['=', ':', ',', '@']).for_each(|part| self.as_path(part, is_pattern));
        }
    }

    fn as_path(&mut self, text: &str, is_pattern: bool) {
        if text.is_empty() || text == "." || text.len() > 4096 || text.contains(['\0', '\n']) {
            return;
        }
        if is_pattern && text.contains('/') {
            let fixed = text.split(['*', '?', '[', '{']).next().unwrap_or_default();
            let Some((folder, _)) = fixed.rsplit_once('/') else { return };
            return self.each_path(folder, |collector, folder| collector.all_of(folder));
        }
        self.each_path(text, Self::path);
        if !text.contains('/') {
            for folder in self.project.own_path.clone() {
                self.path(&folder.join(text));
            }
        }
    }

    /// A path from each folder that it may start at.
    fn each_path(&mut self, text: &str, mut with: impl FnMut(&mut Self, &Path)) {
        if let Some(below) = text.strip_prefix("~/") {
            let home = self.project.variable("HOME", &self.working_dir);
            home.iter().for_each(|home| with(self, &home.join(below)));
        } else if Path::new(text).is_absolute() {
            with(self, Path::new(text));
        } else {
            for folder in self.folders.clone() {
                with(self, &folder.join(text));
            }
        }
    }

    /// Takes what is at a path.
    fn path(&mut self, path: &Path) {
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        if !self.seen.insert(path.clone()) {
            return;
        }
        if self.seen.len() > MAX_LOOKUPS {
            return self.refuse("it names too many files".to_owned());
        }
        let shown = self.project.shown(&path);
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if path.symlink_metadata().is_ok() => {
                return self.refuse(format!("`{shown}` is a link that leads nowhere: {error}"));
            }
            Err(_) => return self.stamp_nearest(&path),
        };
        let is_folder = real.is_dir();
        match self.project.place(&real) {
            Place::Inside if is_folder => self.folder(path),
            Place::Inside => self.file(&path, &real, shown),
            _ if is_folder => self.add_folder(path),
            Place::System => drop(self.found.programs.insert(real.display().to_string())),
            Place::Outside => {
                let leads = if real == path { String::new() } else { format!(" leads to `{}`, which", real.display()) };
                self.refuse(format!("`{shown}`{leads} is outside of the project"));
            }
        }
    }

    fn folder(&mut self, path: PathBuf) {
        for main in FOLDER_MAINS {
            self.path(&path.join(main));
        }
        self.add_folder(path);
    }

    fn add_folder(&mut self, path: PathBuf) {
        if self.folders.contains(&path) || path == *self.project.root() {
            return;
        }
        if self.folders.len() >= MAX_FOLDERS {
            return self.refuse("it names too many folders".to_owned());
        }
        self.folders.push(path);
    }

    fn all_of(&mut self, folder: &Path) {
        if folder.canonicalize().is_ok_and(|folder| self.project.place(&folder) != Place::Inside) {
            return;
        }
        for name in self.list(folder) {
            let path = folder.join(name);
            if !path.is_dir() {
                self.path(&path);
            }
        }
    }

    fn file(&mut self, path: &Path, real: &Path, shown: String) {
        if self.found.files.len() >= MAX_FILES {
            return self.refuse(format!("it names more than {MAX_FILES} files"));
        }
        match self.read(path, real) {
            Err(cause) => self.refuse(format!("`{shown}` {cause}")),
            Ok((stamp, bytes)) => {
                self.found.stamps.push((path.to_owned(), stamp));
                let target = self.project.shown(real);
                let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let text =
                    String::from_utf8(bytes.clone()).ok().filter(|text| text.len() <= MAX_TEXT && !is_secret(&name));
                let file = NamedFile {
                    path: shown.clone(),
                    target: Some(target).filter(|target| *target != shown),
                    sha256: hexadecimal(&Sha256::digest(&bytes)),
                    size: bytes.len() as u64,
                    text,
                };
                if bytes.len() <= MAX_SCRIPT {
                    let parent = |path: &Path| path.parent().unwrap_or(path).to_owned();
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    self.scripts.push(Script { folders: [parent(path), parent(real)], name, text });
                }
                self.found.files.insert(shown, file);
            }
        }
    }

    /// A file's bytes, and its state from before they were read.
    fn read(&mut self, path: &Path, real: &Path) -> Result<(Stamp, Vec<u8>), String> {
        let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
        // What `real` leads to may have been exchanged for a link, or for a pipe that nobody writes to.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(real, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
        let file = std::fs::File::from(file);
        let meta = file.metadata().map_err(unreadable)?;
        if !meta.is_file() {
            return Err("is not a file".to_owned());
        }
        self.bytes = self.bytes.saturating_add(meta.len());
        if meta.len() > MAX_FILE || self.bytes > MAX_BYTES {
            return Err("is too large".to_owned());
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err("is too large".to_owned());
        }
        // The path is what is run: it must still lead to what was read.
        let stamp = Stamp::of(&meta);
        path.metadata()
            .is_ok_and(|now| Stamp::of(&now).is_same_file(&stamp))
            .then_some((stamp, bytes))
            .ok_or_else(|| "changed while it was read".to_owned())
    }

    /// The folder that would show a file which is not there yet.
    fn stamp_nearest(&mut self, path: &Path) {
        let nearest = path.ancestors().skip(1).find(|above| above.is_dir());
        if let Some(folder) = nearest.filter(|folder| folder.starts_with(self.project.root())) {
            self.stamp_folder(folder);
        }
    }

    fn stamp_folder(&mut self, folder: &Path) {
        if !self.found.stamps.iter().any(|(path, _)| path == folder)
            && let Ok(meta) = folder.metadata()
        {
            self.found.stamps.push((folder.to_owned(), Stamp::of(&meta)));
        }
    }

    /// The names in a folder; none where there is none.
    fn list(&mut self, folder: &Path) -> Vec<String> {
        if let Some(names) = self.listed.get(folder) {
            return names.clone();
        }
        if folder.is_dir() {
            self.stamp_folder(folder);
        } else {
            self.stamp_nearest(folder);
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES + 1);
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        if names.len() > MAX_ENTRIES {
            self.refuse(format!("`{}` has more than {MAX_ENTRIES} entries", self.project.shown(folder)));
        }
        names.sort();
        self.listed.insert(folder.to_owned(), names.clone());
        names
    }

    fn imports(&mut self, script: &Script) {
        for import in imports(&script.name, &script.text) {
            match import {
                Import::Module { up: 0, parts } => {
                    let own = script.folders.iter().cloned();
                    let roots: BTreeSet<PathBuf> = own.chain(self.import_roots()).collect();
                    roots.iter().for_each(|root| self.module(root, &parts));
                }
                Import::Module { up, parts } => {
                    for folder in &script.folders {
                        if let Some(base) = folder.ancestors().nth(up - 1) {
                            self.module(base, &parts);
                        }
                    }
                }
                Import::Path(path) => {
                    for folder in script.folders.iter().chain(&self.folders.clone()) {
                        for ending in JAVASCRIPT_ENDINGS {
                            self.path(&folder.join(format!("{path}{ending}")));
                        }
                    }
                }
            }
        }
    }

    fn import_roots(&self) -> Vec<PathBuf> {
        let usual = [self.project.root(), &self.working_dir].into_iter().flat_map(python::import_roots);
        usual.chain(self.folders.iter().cloned()).filter(|root| root.starts_with(self.project.root())).collect()
    }

    /// A module that a definition names: `pkg.mod`, `pkg.mod.function`; files are found as paths.
    fn module_name(&mut self, name: &str) {
        if let Some(parts) = dotted(name) {
            for root in self.import_roots() {
                self.module(&root, &parts);
                self.module(&root, &[parts.clone(), vec!["__main__".to_owned()]].concat());
            }
        }
    }

    /// All files below `root` that a dotted name may mean, those of its packages too.
    fn module(&mut self, root: &Path, parts: &[String]) {
        if !root.starts_with(self.project.root()) {
            return;
        }
        let mut folder = root.to_owned();
        self.module_files(&folder, "__init__");
        for part in parts {
            self.module_files(&folder, part);
            folder.push(part);
            self.module_files(&folder, "__init__");
        }
    }

    fn module_files(&mut self, folder: &Path, stem: &str) {
        let is_of = |name: &str| name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('.'));
        for name in self.list(folder).into_iter().filter(|name| is_of(name)) {
            if name.rsplit_once('.').is_some_and(|(_, extension)| MODULE_EXTENSIONS.contains(&extension)) {
                self.path(&folder.join(name));
            }
        }
        let cache = folder.join("__pycache__");
        if cache.is_dir() {
            for name in self.list(&cache).into_iter().filter(|name| is_of(name)) {
                let path = cache.join(&name);
                if runs_unchecked(&path) {
                    self.refuse(format!("`{}` is run without a look at its source", self.project.shown(&path)));
                }
            }
        }
    }

    fn refuse(&mut self, why: String) {
        if self.found.refusals.len() < MAX_FOLDERS {
            self.found.refusals.push(why);
        }
    }
}

/// Whether a compiled module is one that Python takes whatever its source says (PEP 552: hash-based, unchecked).
fn runs_unchecked(path: &Path) -> bool {
    let mut head = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let [.., flags, _, _, _] = head;
    read.is_ok() && flags & 0b11 == 0b01
}

/// Whether a file's name says that its text is not to be kept elsewhere.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with(".env")
        || name.starts_with("id_")
        || [".key", ".pem", ".env"].iter().any(|end| name.ends_with(end))
}
