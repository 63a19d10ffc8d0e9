//! Python hooks: a function that is called with the event as a `dict`.
//!
//! A pool of interpreters answers, over the processes of [`worker`](super::worker): each runs a small driver
//! (`driver.py`), which imports the module once, and again when one of the project's files that it consists of has
//! changed. The function's `dict` is read as what a command hook prints, and so is a `str`; `None` is no opinion. What it
//! raises is its failure, with the traceback in the outcome's stderr.
//!
//! The project's modules are compiled from their source, so that no compiled file beside them decides anything; the
//! standard library goes before them, and they go before what is installed.

mod module;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use gatehook_events::FailureKind;
use serde::Deserialize;
use serde_json::json;

use self::module::{Target, checked_file};
pub use self::module::{import_roots, module_file};
use super::command::environment;
use super::command::program::{Program, is_executable, search};
use super::confine::Launcher;
use super::worker::pool::{Limits, Pool, Unreadable};
use super::worker::process::Launch;
use crate::definition::{HandlerDefinition, HookDefinition, PythonDefinition};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};

const DRIVER: &str = include_str!("driver.py");

/// Makes the handlers of `type: python`. Each has interpreters of its own, which end with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct PythonFactory;

impl HandlerFactory for PythonFactory {
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let HandlerDefinition::Python(python) = &definition.handler else {
            return Err(DefinitionError { field: "type", message: "it is no python hook".to_owned(), help: None });
        };
        let working_dir = environment::dir_of_hook(definition, env);
        let mut hook_env = environment::of_hook(definition, &env.env)?;
        let mut roots = import_roots(&working_dir);
        let file = checked_file(python, definition.origin.source, &roots)?;
        let target = Target::of(python)?;
        if let Some(folder) = file.as_deref().and_then(Path::parent).filter(|_| target.is_path) {
            // A script finds what lies beside it.
            roots.retain(|root| root != folder);
            roots.insert(0, folder.to_owned());
        }
        let spec = json!({
            "module": target.name(),
            "function": target.function,
            "file": file.as_deref().map(text).transpose()?,
            // One that is part of a package is imported with it.
            "is_file": file.is_some() && !target.name().contains('.') && !is_package(file.as_deref()),
            "roots": roots.iter().map(|root| text(root)).collect::<Result<Vec<_>, _>>()?,
        });
        let program = Program {
            path: interpreter(python, &working_dir, &hook_env)?,
            args: vec!["-c".to_owned(), DRIVER.to_owned(), spec.to_string()],
        };
        let name = definition.display_name().into();
        let launcher = Launcher::new(definition, program, &working_dir, &mut hook_env)?;
        let launch = Launch { launcher, env: hook_env, working_dir, name };
        let limits = Limits { workers: python.workers.get(), max_in_flight: 1, idle_timeout: python.idle_timeout };
        Ok(Arc::new(PythonHandler { pool: Pool::new(launch, limits) }))
    }
}

/// One Python hook.
struct PythonHandler {
    pool: Pool,
}

impl Handler for PythonHandler {
    /// Cancel safe: dropped at any point, it ends the interpreter that it has asked.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(self.pool.run(call, read))
    }
}

/// What the driver says of an exception.
#[derive(Deserialize)]
struct Raised {
    message: String,
    traceback: String,
}

/// One line alone, for fuzz targets; `None` where it cannot be read.
#[cfg(fuzzing)]
pub fn read_line(line: Bytes) -> Option<Result<Reply, HandlerError>> {
    read(line).ok()
}

/// One line of the driver's.
fn read(line: Bytes) -> Result<Result<Reply, HandlerError>, Unreadable> {
    let stdout = match line.first() {
        Some(b'{') => line,
        Some(b'n') if line == "null" => Bytes::new(),
        Some(b'"') => serde_json::from_slice::<String>(&line).map_err(|_| unreadable())?.into(),
        Some(b'!') => {
            let said = line.get(1..).unwrap_or_default();
            let Raised { message, traceback } = serde_json::from_slice(said).map_err(|_| unreadable())?;
            let message = format!("it raised {message}");
            return Ok(Err(HandlerError { kind: FailureKind::HandlerError, message, stderr: traceback }));
        }
        Some(b'+') => {
            return Ok(Err(HandlerError::new(FailureKind::OutputTooLarge, "it returned more than 1 MiB")));
        }
        _ => return Err(unreadable()),
    };
    Ok(Ok(Reply::Process { stdout, stderr: String::new(), exit_code: 0 }))
}

fn unreadable() -> Unreadable {
    Unreadable { kind: FailureKind::MalformedJson, what: "its interpreter's answer is unreadable" }
}

fn is_package(file: Option<&Path>) -> bool {
    file.and_then(Path::file_name).is_some_and(|name| name == "__init__.py")
}

fn text(path: &Path) -> Result<&str, DefinitionError> {
    path.to_str().ok_or_else(|| DefinitionError {
        field: "module",
        message: format!("{} is not UTF-8", path.display()),
        help: Some("rename the folder".to_owned()),
    })
}

/// The interpreter that is named, else that of the virtual environment, else the first on `PATH`.
fn interpreter(
    python: &PythonDefinition,
    working_dir: &Path,
    env: &BTreeMap<String, String>,
) -> Result<PathBuf, DefinitionError> {
    let missing =
        |message: String, help: &str| DefinitionError { field: "python", message, help: Some(help.to_owned()) };
    if let Some(named) = python.python.as_deref().filter(|named| !named.is_empty()) {
        let found = if named.contains('/') {
            Some(working_dir.join(named)).filter(|path| is_executable(path))
        } else {
            search(named, env)
        };
        let help = "give the path of an interpreter, or leave `python` out";
        return found.ok_or_else(|| missing(format!("no interpreter `{}` was found", named.escape_debug()), help));
    }
    if let Some(folder) = env.get("VIRTUAL_ENV").filter(|folder| !folder.is_empty()) {
        let bin = working_dir.join(folder).join("bin");
        let found = ["python3", "python"].map(|name| bin.join(name)).into_iter().find(|path| is_executable(path));
        return found.ok_or_else(|| {
            missing(format!("VIRTUAL_ENV has no interpreter in {}", bin.display()), "unset it, or name `python`")
        });
    }
    search("python3", env).or_else(|| search("python", env)).ok_or_else(|| {
        missing(
            "there is no `python3` on PATH".to_owned(),
            "install Python 3.8 or later, or name an interpreter in `python`",
        )
    })
}
