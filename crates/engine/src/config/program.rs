//! Finds the program of a command without a shell, at load.

use std::path::{Path, PathBuf};

use super::hooks::ReadOptions;

/// Its absolute path, or why there is none: a sentence fragment after "the program". What is meant for a shell may hold
/// a secret, and is shown as far as its first word.
pub(crate) fn resolve(program: &str, working_dir: Option<&str>, options: &ReadOptions<'_>) -> Result<String, String> {
    let found = if !program.contains('/') {
        on_path(program, options)?
    } else if Path::new(program).is_absolute() {
        PathBuf::from(program)
    } else {
        options.working_dir.join(plain_dir(working_dir)?).join(program)
    };
    let found = std::path::absolute(&found).unwrap_or(found);
    if !is_executable(&found) {
        let cause = if found.exists() { "is not executable" } else { "does not exist" };
        return Err(format!("`{}` {cause}", first_word(&found.display().to_string())));
    }
    let text = found.into_os_string().into_string();
    text.map_err(|_| format!("`{program}` lies in a folder whose name is not UTF-8"))
}

fn on_path(program: &str, options: &ReadOptions<'_>) -> Result<PathBuf, String> {
    let path = options.env.get("PATH").map_or("", String::as_str);
    // An empty entry means the working directory to a shell; a guard is not looked up there.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let mut programs = folders.map(|folder| folder.join(program));
    programs
        .find(|program| is_executable(program))
        .ok_or_else(|| format!("`{}` is nowhere on PATH", first_word(program)))
}

fn first_word(line: &str) -> String {
    match line.trim().split_once(char::is_whitespace) {
        Some((word, _)) => format!("{word} …"),
        None => line.trim().to_owned(),
    }
}

fn plain_dir(working_dir: Option<&str>) -> Result<&str, String> {
    match working_dir.unwrap_or_default() {
        dir if dir.starts_with('~') || dir.contains('$') => {
            Err("has a relative path, and its `working_dir` is only known when it runs".to_owned())
        }
        dir => Ok(dir),
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
