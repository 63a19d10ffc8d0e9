//! The SDK tests of `tests/clients`: Python and npm packages, installed once per lock file, then one run of both.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Outcome;
use crate::program::{Program, root, target};

/// Runs the Python and JavaScript SDKs against this `gatehook`.
pub(crate) fn test(gatehook: &Path) -> Outcome {
    let tests = root().join("tests/clients");
    let home = target().join("clients");
    fs::create_dir_all(&home)?;
    let python = python_packages(&tests, &home)?;
    let modules = npm_packages(&tests, &home)?;
    Program::new(python)
        .arg(tests.join("run.py"))
        .env("GATEHOOK_BIN", gatehook)
        .env("CLIENTS_HOME", &home)
        .env("NODE_PATH", modules)
        .run()
}

/// A virtual environment with `requirements.txt` in it; its Python.
fn python_packages(tests: &Path, home: &Path) -> Outcome<PathBuf> {
    let requirements = tests.join("requirements.txt");
    let environment = home.join("venv");
    let python = environment.join("bin/python");
    once(&environment, &[&requirements], || {
        Program::new("python3").args(["-m", "venv", "--clear"]).arg(&environment).run()?;
        Program::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements).run()
    })?;
    Ok(python)
}

/// `node_modules` after `package-lock.json`, kept out of the source tree.
fn npm_packages(tests: &Path, home: &Path) -> Outcome<PathBuf> {
    let directory = home.join("npm");
    let files = ["package.json", "package-lock.json"].map(|name| tests.join(name));
    once(&directory, &[&files[0], &files[1]], || {
        fs::create_dir_all(&directory)?;
        for file in &files {
            fs::copy(file, directory.join(file.file_name().unwrap_or_default()))?;
        }
        Program::new("npm").args(["ci", "--no-audit", "--no-fund"]).in_directory(&directory).run()
    })?;
    Ok(directory.join("node_modules"))
}

/// Runs `install` unless it ended well before with exactly these lock files.
fn once(directory: &Path, locks: &[&Path], install: impl FnOnce() -> Outcome) -> Outcome {
    let mut hash = Sha256::new();
    for lock in locks {
        hash.update(fs::read(lock).map_err(|error| format!("{}: {error}", lock.display()))?);
    }
    let wanted = format!("{:x}", hash.finalize());
    let stamp = directory.with_extension("stamp");
    if directory.is_dir() && fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    println!("installing {}", directory.display());
    install()?;
    fs::write(stamp, wanted)?;
    Ok(())
}
