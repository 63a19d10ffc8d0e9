//! `traces:`: whether dispatches are remembered, where, and for how long. Whoever runs an executor acts on it.

use std::path::PathBuf;
use std::time::Duration;

use super::diagnostic::DiagnosticKind;
use super::fields::TRACES;
use super::hooks::ReadOptions;
use super::section::Section;

/// What files say about traces; what is absent was not said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceSettings {
    /// Whether dispatches are remembered.
    pub enabled: Option<bool>,
    /// The file that remembers them.
    pub path: Option<PathBuf>,
    /// For how long.
    pub keep: Option<Duration>,
    /// How many at most.
    pub max_rows: Option<u64>,
}

impl TraceSettings {
    pub(super) fn read(root: &Section<'_>, options: &ReadOptions<'_>) -> Self {
        let Some(section) = root.section("traces", TRACES) else { return Self::default() };
        let keep = section.age("keep");
        if keep.is_some_and(|keep| keep.is_zero()) {
            let problem = section.problem(DiagnosticKind::InvalidValue, "nothing can be kept for no time");
            section.report(problem.at(section.place("keep")).help("`enabled: false` keeps nothing"));
        }
        Self {
            enabled: section.bool("enabled"),
            path: section.text("path").map(|path| options.working_dir.join(path)),
            keep,
            max_rows: section.count("max_rows", 1).map(|rows| rows as u64),
        }
    }

    /// These settings, and where they are silent those of a weaker file.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        Self {
            enabled: self.enabled.or(weaker.enabled),
            path: self.path.or(weaker.path),
            keep: self.keep.or(weaker.keep),
            max_rows: self.max_rows.or(weaker.max_rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, parse};
    use super::*;

    fn read(text: &str) -> Result<TraceSettings, String> {
        let options = ReadOptions { working_dir: "/etc/gatehook".into(), ..ReadOptions::default() };
        parse("t.yaml", text, Format::Yaml, &options).map(|file| file.traces).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_said_is_read_and_a_path_is_taken_from_the_files_folder() {
        let said = read("traces: {enabled: false, path: t.db, keep: 7d, max_rows: 500}").unwrap();
        let keep = Some(Duration::from_secs(7 * 86_400));
        let path = Some("/etc/gatehook/t.db".into());
        assert_eq!(said, TraceSettings { enabled: Some(false), path, keep, max_rows: Some(500) });
        assert_eq!(read("hooks: {}").unwrap(), TraceSettings::default());
        assert_eq!(read("traces: {keep: 36h}").unwrap().keep, Some(Duration::from_secs(36 * 3600)));
    }

    #[test]
    fn what_cannot_be_is_a_fault_at_its_place() {
        for (wrong, what) in [
            ("keep: 0s", "nothing can be kept for no time"),
            ("keep: 7 days", "`keep` must be a number of seconds, or text such as `30m`, `12h`, `7d`"),
            ("keep: -1d", "`keep` must be"),
            ("keep: 1000000d", "`keep` must be between 0 and 365 days"),
            ("max_rows: 0", "`max_rows` must be at least 1"),
            ("enabled: maybe", "`enabled` must be"),
            ("rows: 5", "there is no field `rows` here"),
        ] {
            let error = read(&format!("traces: {{{wrong}}}")).unwrap_err();
            assert!(error.contains(what), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_stronger_word_stands() {
        let weaker = TraceSettings { enabled: Some(true), max_rows: Some(5), ..TraceSettings::default() };
        let stronger = TraceSettings { enabled: Some(false), ..TraceSettings::default() };
        assert_eq!(stronger.or(weaker.clone()), TraceSettings { enabled: Some(false), ..weaker });
    }
}
