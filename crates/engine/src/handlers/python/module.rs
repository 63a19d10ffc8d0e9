//! Which file a Python hook names: the one place with the rule.

use std::path::{Component, Path, PathBuf};

use crate::definition::{PythonDefinition, Source};
use crate::handler::DefinitionError;

/// What a definition names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'a> {
    /// A file's path, or a dotted name.
    pub(super) module: &'a str,
    pub(super) is_path: bool,
    /// The function, as in `check` or `Guard.check`.
    pub(super) function: &'a str,
}

/// The folders below a project where modules are looked for, in this order: the project, `.gatehook`, `.ollama/hooks`.
pub fn import_roots(project: &Path) -> Vec<PathBuf> {
    vec![project.to_owned(), project.join(".gatehook"), project.join(".ollama/hooks")]
}

/// The file of the module that a definition names. A path starts from the first root; a dotted name is looked for in
/// each root, `a.b` as `a/b.py` or `a/b/__init__.py`. `None` where no root has it: it is installed, or missing.
///
/// ```
/// use gatehook_engine::definition::PythonDefinition;
/// use gatehook_engine::handlers::python::{import_roots, module_file};
///
/// let project = std::env::temp_dir();
/// let definition = PythonDefinition::new("no_such_package.guard.check", None);
/// assert_eq!(module_file(&definition, &import_roots(&project)), None);
/// ```
pub fn module_file(definition: &PythonDefinition, roots: &[PathBuf]) -> Option<PathBuf> {
    let target = Target::of(definition).ok()?;
    if target.is_path {
        return Some(roots.first()?.join(target.module)).filter(|file| file.is_file());
    }
    let place = target.module.replace('.', "/");
    let candidates = roots.iter().flat_map(|root| {
        let (package, module) = (root.join(&place).join("__init__.py"), root.join(format!("{place}.py")));
        // As Python has it, a package goes before a module.
        [package, module]
    });
    candidates.into_iter().find(|file| file.is_file())
}

impl<'a> Target<'a> {
    pub(super) fn of(definition: &'a PythonDefinition) -> Result<Self, DefinitionError> {
        let module = definition.module.as_str();
        let is_path = module.contains('/') || module.ends_with(".py");
        let function = definition.function.as_deref().filter(|function| !function.is_empty());
        let (module, function) = match (function, module.rsplit_once('.')) {
            (Some(function), _) => (module, function),
            (None, Some(split)) if !is_path => split,
            (None, _) => {
                let help = "add `function`, or name it in `module` as in `module: package.module.function`";
                return Err(wrong("function", "it names no function".to_owned(), help));
            }
        };
        if !is_path && !is_dotted_name(module) {
            let help = "write `package.module`, or a file's path as in `.gatehook/guard.py`";
            return Err(wrong("module", format!("`{}` is no module's name", definition.module.escape_debug()), help));
        }
        if is_path && (module.contains('\0') || !module.ends_with(".py")) {
            let help = "name a file that ends with `.py`";
            return Err(wrong("module", format!("`{}` is no Python file", module.escape_debug()), help));
        }
        if !is_dotted_name(function) {
            let help = "write its name alone, without parentheses";
            return Err(wrong("function", format!("`{}` is no function's name", function.escape_debug()), help));
        }
        Ok(Self { module, is_path, function })
    }

    /// The name under which the file of this target is imported.
    pub(super) fn name(&self) -> &'a str {
        if self.is_path {
            Path::new(self.module).file_stem().and_then(|stem| stem.to_str()).unwrap_or(self.module)
        } else {
            self.module
        }
    }
}

/// The file, where one is named or found. One that is missing, is no file or lies outside of the project is refused; the
/// project's owner alone may name files elsewhere.
pub(super) fn checked_file(
    definition: &PythonDefinition,
    source: Source,
    roots: &[PathBuf],
) -> Result<Option<PathBuf>, DefinitionError> {
    let target = Target::of(definition)?;
    let project = roots.first().map(PathBuf::as_path).unwrap_or_else(|| Path::new(""));
    let outside = || {
        let message = format!("`{}` lies outside of {}", target.module, project.display());
        wrong("module", message, "keep it in the project: hooks of a workspace bring their files with them")
    };
    if target.is_path && Path::new(target.module).is_relative() && leaves(Path::new(target.module)) {
        return Err(outside());
    }
    let Some(file) = module_file(definition, roots) else {
        if target.is_path {
            let path = project.join(target.module);
            let cause = if path.exists() { "is no file" } else { "does not exist" };
            let message = format!("{} {cause}", path.display());
            return Err(wrong("module", message, "a relative path starts from the hook's working directory"));
        }
        return Ok(None);
    };
    let is_inside = || Some(file.canonicalize().ok()?.starts_with(project.canonicalize().ok()?));
    if source.needs_approval() && is_inside() != Some(true) {
        return Err(outside());
    }
    Ok(Some(file))
}

/// Whether a relative path climbs above where it starts.
fn leaves(path: &Path) -> bool {
    let mut depth = 0_i64;
    path.components().any(|component| {
        match component {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
        depth < 0
    })
}

fn is_dotted_name(text: &str) -> bool {
    text.split('.').all(|name| {
        let mut chars = name.chars();
        chars.next().is_some_and(|first| first == '_' || first.is_alphabetic())
            && chars.all(|char| char == '_' || char.is_alphanumeric())
    })
}

fn wrong(field: &'static str, message: String, help: &str) -> DefinitionError {
    DefinitionError { field, message, help: Some(help.to_owned()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn project(files: &[&str]) -> tempfile::TempDir {
        let project = tempfile::tempdir().unwrap();
        for file in files {
            let file = project.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        project
    }

    #[test]
    fn a_module_is_found_in_the_project_before_the_folders_of_its_hooks() {
        let files = [
            "a.py",
            ".gatehook/a.py",
            ".gatehook/b.py",
            ".ollama/hooks/b.py",
            ".ollama/hooks/p/c.py",
            "d/e/__init__.py",
        ];
        let project = project(&files);
        let roots = import_roots(project.path());
        for (module, function, found) in [
            ("a", Some("f"), Some("a.py")),
            ("a.f", None, Some("a.py")),
            ("b", Some("f"), Some(".gatehook/b.py")),
            ("p.c.f", None, Some(".ollama/hooks/p/c.py")),
            ("d.e", Some("f"), Some("d/e/__init__.py")),
            (".gatehook/a.py", Some("f"), Some(".gatehook/a.py")),
            ("a.py", Some("f"), Some("a.py")),
            ("b.py", Some("f"), None),
            ("z", Some("f"), None),
            ("d/e", Some("f"), None),
        ] {
            let definition = PythonDefinition::new(module, function);
            assert_eq!(module_file(&definition, &roots), found.map(|file| project.path().join(file)), "{module}");
        }
    }

    #[test]
    fn what_names_no_function_of_a_module_is_refused() {
        for (module, function, field) in [
            ("guard", None, "function"),
            (".gatehook/guard.py", None, "function"),
            ("guard.py", Some(""), "function"),
            ("", Some("f"), "module"),
            ("a..b", Some("f"), "module"),
            ("a b", Some("f"), "module"),
            ("1a", Some("f"), "module"),
            ("a/b", Some("f"), "module"),
            ("a/\0.py", Some("f"), "module"),
            ("a", Some("f()"), "function"),
            ("a", Some("f."), "function"),
        ] {
            let error = Target::of(&PythonDefinition::new(module, function)).unwrap_err();
            assert_eq!(error.field, field, "{module:?} {function:?}");
            assert!(error.help.is_some());
        }
    }

    #[test]
    fn a_file_outside_of_the_project_is_refused() {
        let (project, elsewhere) = (project(&["in.py", "dir.py/x"]), project(&["out.py"]));
        let out = elsewhere.path().join("out.py");
        std::os::unix::fs::symlink(&out, project.path().join("link.py")).unwrap();
        let roots = import_roots(project.path());
        let check = |module: &str, source| checked_file(&PythonDefinition::new(module, Some("f")), source, &roots);
        for module in ["../out.py", "a/../../out.py", "missing.py", "dir.py"] {
            assert!(check(module, Source::User).is_err(), "{module}");
        }
        let out = out.to_str().unwrap();
        for module in [out, "link.py", "link", "../in.py"] {
            let error = check(module, Source::Workspace).unwrap_err();
            assert!(error.message.contains("outside"), "{module}: {error}");
        }
        assert_eq!(check(out, Source::User).unwrap(), Some(out.into()));
        assert!(check("a/../in.py", Source::Workspace).is_err(), "a does not exist");
        assert_eq!(check("in", Source::Workspace).unwrap(), Some(project.path().join("in.py")));
        assert_eq!(check("installed", Source::Workspace).unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_target_or_a_fault(module in "[a-z./_]{0,12}|.*", function in proptest::option::of(".*")) {
            let definition = PythonDefinition::new(&module, function.as_deref());
            let _ = module_file(&definition, &import_roots(Path::new("/nowhere")));
        }
    }
}
