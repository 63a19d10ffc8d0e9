//! `import:`, files of other systems that are read because somebody names them.

use std::path::{Component, Path, PathBuf};

use gatehook_events::Profile;

use super::DiagnosticKind as Kind;
use super::hooks::ReadOptions;
use super::section::{Field, Section, Shape};
use super::suggest;

/// One of `import`.
pub const IMPORT: &[Field] = &[
    Field::new("file", Shape::Text, "The file; a relative path starts at this one's folder."),
    Field::new("dialect", Shape::Word(DIALECTS), "The contract its hooks were written for.")
        .default("what its name says, as of `agent.yaml` or `.ollama/settings.json`"),
];

/// The contracts whose own files are read.
const DIALECTS: &[&str] = &["docker-agent", "docker-agent@v1.58", "ollama-cli", "ollm"];

/// What the end of a path says of a file: the contract, or the program whose files are not read. To read another kind,
/// give its row a contract.
const KINDS: &[(&str, Result<Profile, &str>)] = &[
    (".ollama/settings.json", Ok(Profile::OllamaCli)),
    ("agent.yaml", Ok(Profile::DockerAgent)),
    ("agent.yml", Ok(Profile::DockerAgent)),
    ("cagent/config.yaml", Ok(Profile::DockerAgent)),
    ("manifest.json", Ok(Profile::Ollm)),
    (".claude/settings.json", Err("Claude Code")),
    (".claude/settings.local.json", Err("Claude Code")),
    (".cursor/hooks.json", Err("Cursor")),
    (".gemini/settings.json", Err("Gemini CLI")),
    (".qwen/settings.json", Err("Qwen Code")),
    (".codex/hooks.json", Err("Codex")),
    (".codex/config.toml", Err("Codex")),
    (".github/hooks/hooks.json", Err("Copilot")),
];

/// A file that another one names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Its path.
    pub file: PathBuf,
    /// The contract that its hooks were written for.
    pub profile: Profile,
}

/// What a file imports.
pub(super) fn imports(root: &Section<'_>, options: &ReadOptions<'_>) -> Vec<Import> {
    if root.node("import").is_none() {
        return Vec::new();
    }
    // So that no file imports itself, by whatever way.
    if options.profile != Profile::Native {
        let problem = root.problem(Kind::MisplacedField, "a file of another system imports nothing");
        root.report(problem.at(root.place("import")).help("name all files in a file of gatehook's own"));
        return Vec::new();
    }
    root.sections("import", IMPORT).iter().filter_map(|section| import(section, options)).collect()
}

fn import(section: &Section<'_>, options: &ReadOptions<'_>) -> Option<Import> {
    section.require("file");
    let dialect = section.text("dialect").map(|name| dialect(section, name));
    let file = section.text("file")?;
    let report = |kind, message: String, help: String| {
        section.report(section.problem(kind, message).at(section.place("file")).help(help));
    };
    let said = match dialect {
        Some(profile) => Some(Ok(profile?)),
        None => kind(file),
    };
    let profile = match said {
        Some(Ok(profile)) => profile,
        Some(Err(program)) => {
            let message = format!("`{file}`: hooks of {program} are not read by this version");
            report(Kind::UnsupportedType, message, format!("files of {} are", DIALECTS.join(", ")));
            return None;
        }
        None => {
            let message = format!("`{file}`: nothing says whose hooks these are");
            report(Kind::FieldRequired, message, format!("add `dialect`: {}", suggest::one_of("", DIALECTS)));
            return None;
        }
    };
    if options.source.needs_approval() && leaves(Path::new(file)) {
        let message = format!("`{file}` leads out of the project");
        report(Kind::MisplacedField, message, "a project imports what is in it".to_owned());
        return None;
    }
    Some(Import { file: options.file_dir().join(file), profile })
}

fn dialect(section: &Section<'_>, name: &str) -> Option<Profile> {
    let profile = Profile::from_name(name).filter(|_| DIALECTS.contains(&name));
    if profile.is_none() {
        let problem = section.problem(Kind::UnknownProfile, format!("files of `{name}` are not imported"));
        section.report(problem.at(section.place("dialect")).help(suggest::one_of(name, DIALECTS)));
    }
    profile
}

/// What the end of a path says.
fn kind(file: &str) -> Option<Result<Profile, &'static str>> {
    let is_below_ollm = || Path::new(file).components().any(|part| part == Component::Normal(".ollm".as_ref()));
    let row = KINDS.iter().find(|(end, _)| Path::new(file).ends_with(end));
    row.map(|(_, kind)| *kind).or_else(|| is_below_ollm().then_some(Ok(Profile::Ollm)))
}

/// Whether a path leads out of the folder it starts in. Links are looked at when the file is.
fn leaves(path: &Path) -> bool {
    let mut depth = 0_usize;
    path.is_absolute()
        || path.components().any(|part| match part {
            Component::ParentDir if depth == 0 => true,
            Component::ParentDir => {
                depth -= 1;
                false
            }
            Component::Normal(_) => {
                depth += 1;
                false
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Format, parse};
    use super::*;
    use crate::definition::Source;

    fn read(text: &str, source: Source) -> Result<Vec<Import>, String> {
        let file = Some(Arc::new(PathBuf::from("/p/gatehook.yaml")));
        let options = ReadOptions { source, file, ..ReadOptions::default() };
        parse("g.yaml", text, Format::Yaml, &options).map(|file| file.imports).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_says_whose_hooks_a_file_has_where_nothing_else_does() {
        for (text, file, profile) in [
            ("import: [{file: .ollama/settings.json}]", "/p/.ollama/settings.json", Profile::OllamaCli),
            ("import: [{file: sub/agent.yaml}]", "/p/sub/agent.yaml", Profile::DockerAgent),
            ("import: [{file: /x/.ollm/hooks/a.json}]", "/x/.ollm/hooks/a.json", Profile::Ollm),
            ("import: [{file: x.yaml, dialect: docker-agent@v1.58}]", "/p/x.yaml", Profile::DockerAgentV158),
        ] {
            let expected = vec![Import { file: file.into(), profile }];
            assert_eq!(read(text, Source::User), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_imported_is_said_to_be_so() {
        for (text, source, message) in [
            (
                "import: [{file: .claude/settings.json}]",
                Source::User,
                "hooks of Claude Code are not read by this version",
            ),
            ("import: [{file: .cursor/hooks.json}]", Source::User, "hooks of Cursor"),
            ("import: [{file: policy.yaml}]", Source::User, "nothing says whose hooks these are"),
            ("import: [{file: gatehook.yaml}]", Source::User, "nothing says whose"),
            ("import: [{file: x, dialect: native}]", Source::User, "files of `native` are not imported"),
            ("import: [{file: x, dialect: claude}]", Source::User, "files of `claude` are not imported"),
            ("import: [{dialect: ollm}]", Source::User, "`file`"),
            ("import: [{file: x, dialct: ollm}]", Source::User, "dialct"),
            ("import: 3", Source::User, "import"),
            ("import: [x.yaml]", Source::User, "import"),
            ("import: [{file: ../agent.yaml}]", Source::Workspace, "leads out of the project"),
            ("import: [{file: a/../../agent.yaml}]", Source::Workspace, "leads out of the project"),
            ("import: [{file: /etc/agent.yaml}]", Source::Workspace, "leads out of the project"),
        ] {
            let error = read(text, source).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        assert!(read("import: [{file: a/../agent.yaml}]", Source::Workspace).is_ok());
    }
}
