//! Bounds of a hook's processes: what they may use (`limits.rs`), whose rights they have (`user.rs`), and what the
//! system keeps from them (`sandbox.rs`).
//!
//! None of it runs between fork and exec, so that starting stays `posix_spawn`: limits are set by the child's own shell,
//! another user by a program that goes before the hook's, and a sandbox by the thread that starts it.

mod limits;
mod sandbox;
#[cfg(test)]
mod tests;
mod user;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{Child, Command};

pub(in crate::handlers) use self::sandbox::Spawner;
use super::command::program::Program;
use crate::definition::HookDefinition;
use crate::handler::DefinitionError;

/// How the processes of a hook are started.
pub(in crate::handlers) struct Launcher {
    pub(in crate::handlers) program: Program,
    /// `None` starts them where it is called.
    spawner: Option<Spawner>,
}

impl Launcher {
    /// Puts the bounds of `definition` around its program, or says why this system cannot hold them. Variables that name
    /// the user are those of the one it runs as.
    pub(in crate::handlers) fn new(
        definition: &HookDefinition,
        program: Program,
        working_dir: &Path,
        env: &mut BTreeMap<String, String>,
    ) -> Result<Self, DefinitionError> {
        let confinement = &definition.confinement;
        let mut program = limits::around(program, confinement)?;
        if let Some(name) = &confinement.user {
            program = user::around(program, name, &definition.env, env)?;
        }
        let spawner = confinement.sandbox.as_ref().map(|sandbox| {
            let name = definition.display_name();
            Spawner::start(sandbox, working_dir, name)
        });
        Ok(Self { program, spawner: spawner.transpose()? })
    }

    /// Starts the program, which `command` names. Blocks for as long as a start takes.
    pub(in crate::handlers) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        match &self.spawner {
            Some(spawner) => spawner.spawn(command),
            None => command.spawn(),
        }
    }
}

/// A program that is given another one to run.
fn wrapped(program: Program, by: &str, options: Vec<String>) -> Result<Program, DefinitionError> {
    let inner = program.path.into_os_string().into_string().map_err(|path| DefinitionError {
        field: "command",
        message: format!("the path {} of its program is not UTF-8", path.display()),
        help: Some("rename the folder".to_owned()),
    })?;
    let args = options.into_iter().chain([inner]).chain(program.args).collect();
    Ok(Program { path: by.into(), args })
}
