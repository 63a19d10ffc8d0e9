//! Which program runs a command, found once when the hook is loaded: a name that has to be looked up at each start
//! costs a fork, and may mean another file by then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gatehook_events::profile::Shell;
use rustix::fs::{Access, access};

use crate::definition::CommandDefinition;
use crate::handler::{DefinitionError, HandlerEnv};

/// Runs lines that name no other shell.
pub(in crate::handlers) const POSIX_SHELL: &str = "/bin/sh";

/// A program by its absolute path, and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::handlers) struct Program {
    pub(in crate::handlers) path: PathBuf,
    pub(in crate::handlers) args: Vec<String>,
}

impl Program {
    /// The program of `definition`, under the environment that it will run in.
    pub(in crate::handlers) fn find(
        definition: &CommandDefinition,
        shell: Shell,
        env: &HandlerEnv,
        hook_env: &BTreeMap<String, String>,
    ) -> Result<Self, DefinitionError> {
        let CommandDefinition { command, args, .. } = definition;
        if command.trim().is_empty() {
            return Err(wrong(
                "command",
                "it names nothing to run",
                "give a shell line, or a program with `shell: false`",
            ));
        }
        if std::iter::once(command).chain(args).any(|text| text.contains('\0')) {
            return Err(wrong("command", "it contains a NUL character", "remove it"));
        }
        if definition.shell && shell != Shell::None {
            return Ok(Self { path: shell_path(shell, env), args: vec!["-c".to_owned(), command.clone()] });
        }
        let found = if command.contains('/') {
            Some(env.working_dir.join(command)).filter(|path| is_executable(path))
        } else {
            search(command, hook_env)
        };
        found.map(|path| Self { path, args: args.clone() }).ok_or_else(|| {
            wrong(
                "command",
                // What is meant for a shell may hold a secret behind its first word.
                &format!("no executable file `{}` was found", command.split_whitespace().next().unwrap_or_default()),
                "give its absolute path, add its folder to PATH, or leave out `shell: false` if it is a shell line",
            )
        })
    }
}

fn wrong(field: &'static str, message: &str, help: &str) -> DefinitionError {
    DefinitionError { field, message: message.to_owned(), help: Some(help.to_owned()) }
}

fn shell_path(shell: Shell, env: &HandlerEnv) -> PathBuf {
    let users = match shell {
        Shell::Posix | Shell::None => None,
        Shell::Users => env.env.get("SHELL").filter(|path| !path.is_empty()),
    };
    let Some(name) = users else { return POSIX_SHELL.into() };
    let path = if name.contains('/') { Some(PathBuf::from(name)) } else { search(name, &env.env) };
    path.filter(|path| path.is_absolute() && is_executable(path)).unwrap_or_else(|| {
        tracing::warn!(shell = name, "SHELL names no executable file; {POSIX_SHELL} is used");
        POSIX_SHELL.into()
    })
}

/// Looks in the absolute folders of `PATH`. Relative ones are left out: they mean another place in each directory.
pub(in crate::handlers) fn search(name: &str, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folders = env.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    std::env::split_paths(folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

pub(in crate::handlers) fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(command: &str, shell: Option<Shell>, vars: &[(&str, &str)]) -> Result<Program, DefinitionError> {
        let vars: BTreeMap<_, _> = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let definition =
            CommandDefinition { command: command.to_owned(), args: vec!["a b".to_owned()], shell: shell.is_some() };
        let env = HandlerEnv { working_dir: "/".into(), env: vars.clone() };
        Program::find(&definition, shell.unwrap_or(Shell::Posix), &env, &vars)
    }

    #[test]
    fn a_line_runs_in_the_profiles_shell() {
        let path = |shell, vars: &[(&str, &str)]| find("exit 0", Some(shell), vars).unwrap().path;
        assert_eq!(path(Shell::Posix, &[("SHELL", "/usr/bin/env")]), Path::new("/bin/sh"));
        assert_eq!(path(Shell::Users, &[("SHELL", "/usr/bin/env")]), Path::new("/usr/bin/env"));
        assert_eq!(path(Shell::Users, &[("SHELL", "env"), ("PATH", "/usr/bin")]), Path::new("/usr/bin/env"));
        assert_eq!(path(Shell::Users, &[("SHELL", "/no/such/shell")]), Path::new("/bin/sh"));
        assert_eq!(path(Shell::Users, &[]), Path::new("/bin/sh"));
        assert_eq!(find("exit 0", Some(Shell::Posix), &[]).unwrap().args, ["-c", "exit 0"]);
    }

    #[test]
    fn a_program_is_found_on_the_path_of_the_hook() {
        let found = find("env", None, &[("PATH", "bin:/nowhere:/usr/bin")]).unwrap();
        assert_eq!(found, Program { path: "/usr/bin/env".into(), args: vec!["a b".to_owned()] });
        assert_eq!(find("usr/bin/env", None, &[]).unwrap().path, Path::new("/usr/bin/env"));
    }

    #[test]
    fn what_cannot_run_is_refused_with_a_remedy() {
        for (command, path) in
            [("", "/bin"), ("  ", "/bin"), ("env", "/nowhere"), ("/etc/passwd", "/bin"), ("/etc", "")]
        {
            let error = find(command, None, &[("PATH", path)]).unwrap_err();
            assert_eq!(error.field, "command", "{command}");
            assert!(error.help.is_some(), "{command}");
        }
        assert!(find("a\0b", Some(Shell::Posix), &[]).is_err());
        let line = find("curl -H hunter2", None, &[("PATH", "/nowhere")]).unwrap_err();
        assert_eq!(line.message, "no executable file `curl` was found");
    }
}
