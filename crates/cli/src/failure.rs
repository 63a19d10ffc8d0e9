//! Why a command did not do what it was asked, shown with place, text and remedy.

use std::fmt;
use std::io;

use gatehook_agent::team::TeamProblem;
use gatehook_engine::config::{ConfigError, Diagnostic as Found};
use gatehook_engine::executor::BuildCause;
use gatehook_engine::trust::store::StoreError;
use gatehook_engine::{BuildError, text};
use gatehook_events::trace::TraceError;
use gatehook_gateway::{StartError, UpstreamError};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::policy::PolicyError;
use crate::sample::SampleError;
use crate::variables::VariablesError;

/// A failure: what is wrong, problem by problem, and the exit code that says so.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    problems: Vec<Problem>,
}

/// One problem, with its place where it has one.
#[derive(Debug, Default)]
struct Problem {
    message: String,
    kind: Option<&'static str>,
    path: String,
    help: Option<String>,
    place: Option<Place>,
    excerpt: Option<Excerpt>,
}

#[derive(Debug)]
struct Place {
    file: String,
    line: usize,
    /// From 1; `None` where only the line is known.
    column: Option<usize>,
}

#[derive(Debug)]
struct Excerpt {
    source: NamedSource<String>,
    labels: Vec<LabeledSpan>,
}

impl Failure {
    /// A failure without a place in a file.
    pub(crate) fn new(exit: Exit, message: impl Into<String>, help: Option<String>) -> Self {
        Self { exit, problems: vec![Problem { message: message.into(), help, ..Problem::default() }] }
    }

    /// The command line asked for something that there is not.
    pub(crate) fn usage(message: impl Into<String>, help: Option<String>) -> Self {
        Self::new(Exit::Usage, message, help)
    }

    /// Standard output does not take what is written to it.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self::new(Exit::System, format!("standard output cannot be written: {error}"), None)
    }

    /// The problems as data.
    pub(crate) fn problems(&self) -> Vec<Value> {
        self.problems.iter().map(Problem::json).collect()
    }

    /// The problems for a person at a terminal.
    pub(crate) fn shown(&self, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_context_lines(1);
        let mut shown: Vec<String> = self.problems.iter().map(|problem| problem.shown(&handler)).collect();
        if shown.len() > 1 {
            shown.push(format!("{} problems", shown.len()));
        }
        shown.join("\n\n")
    }
}

/// The problems in one line, for logs.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            formatter.write_str(if number > 0 { "; " } else { "" })?;
            problem.write_line(formatter)?;
        }
        Ok(())
    }
}

impl Problem {
    fn of_file(error: &ConfigError, found: &Found) -> Self {
        let mut problem = Problem {
            message: found.message.clone(),
            kind: Some(found.kind.name()),
            path: found.path.clone(),
            help: found.help.clone(),
            ..Problem::default()
        };
        match &found.span {
            Some(span) => {
                let (line, column) = error.position(span.start);
                let file = error.source_name.to_string();
                let here = LabeledSpan::new(None, span.start, span.len());
                let related = found.related.iter();
                let related = related.map(|(span, word)| LabeledSpan::new(Some(word.clone()), span.start, span.len()));
                let source = NamedSource::new(&*error.source_name, harmless(&error.source_text));
                problem.excerpt = Some(Excerpt { source, labels: std::iter::once(here).chain(related).collect() });
                problem.place = Some(Place { file, line, column: Some(column) });
            }
            // A variable of the environment is named by its problem, a file is not.
            None if found.path.is_empty() => problem.message = format!("{}: {}", error.source_name, found.message),
            None => {}
        }
        problem
    }

    fn of_hook(error: BuildError) -> Self {
        let place = error.origin.file.as_ref();
        let place = place.map(|file| Place { file: file.display().to_string(), line: error.origin.line, column: None });
        let mut problem = Problem { message: error.to_string(), place, ..Problem::default() };
        if let BuildCause::Definition(definition) = error.cause {
            problem.path = definition.field.to_owned();
            problem.help = definition.help;
        }
        problem
    }

    fn of_team(problem: TeamProblem) -> Self {
        let TeamProblem { file, line, message, help } = problem;
        let place = file.map(|file| Place { file: file.display().to_string(), line, column: None });
        Problem { message, help, place, ..Problem::default() }
    }

    fn json(&self) -> Value {
        let mut json = json!({"message": self.message, "kind": self.kind, "path": self.path, "help": self.help});
        if let (Some(place), Some(object)) = (&self.place, json.as_object_mut()) {
            object.insert("file".to_owned(), json!(place.file));
            object.insert("line".to_owned(), json!(place.line));
            object.insert("column".to_owned(), json!(place.column));
        }
        json
    }

    fn shown(&self, handler: &GraphicalReportHandler) -> String {
        let mut shown = String::new();
        // A string takes everything that is written to it.
        let _ = handler.render_report(&mut shown, self);
        shown.trim_end().to_owned()
    }

    fn write_line(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(place), Some(_)) = (&self.place, &self.excerpt) {
            write!(formatter, "{place}: ")?;
        }
        // What a pattern's error draws over several lines says nothing in one.
        write!(formatter, "{}", self.to_string().split_whitespace().collect::<Vec<_>>().join(" "))?;
        match &self.help {
            Some(help) => write!(formatter, " ({})", text::plain(help)),
            None => Ok(()),
        }
    }
}

/// Text without control characters, byte for byte of the same length, so that places in it still hold.
fn harmless(text: &str) -> String {
    let harmless = |char: char| match char {
        '\n' | '\t' => char,
        '\r' => ' ',
        char if char.is_control() && char.len_utf8() == 1 => '?',
        char if char.is_control() => '¿',
        char => char,
    };
    text.chars().map(harmless).collect()
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)?;
        self.column.map_or(Ok(()), |column| write!(formatter, ":{column}"))
    }
}

/// What is wrong; the place too, where no excerpt shows it.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(place), None) = (&self.place, &self.excerpt) {
            write!(formatter, "{place}: ")?;
        }
        formatter.write_str(&text::plain(&self.message))?;
        self.kind.map_or(Ok(()), |kind| write!(formatter, " [{kind}]"))
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_deref().map(|help| Box::new(text::plain(help)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| &excerpt.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.excerpt.as_ref()?.labels.iter().cloned();
        Some(Box::new(labels))
    }
}

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Self {
        let problems = match error {
            PolicyError::Unusable { files, hooks } => {
                files.iter().flat_map(of_file).chain(hooks.into_iter().map(Problem::of_hook)).collect()
            }
            PolicyError::Team(error) => error.problems.into_iter().map(Problem::of_team).collect(),
            PolicyError::UnknownProfile(_) => return Self::usage(error.to_string(), None),
            PolicyError::Variables(error) => return error.into(),
            PolicyError::WorkingDir(_) => return Self::new(Exit::Configuration, error.to_string(), None),
        };
        Self { exit: Exit::Configuration, problems }
    }
}

/// The problems of a file, in its order.
fn of_file(error: &ConfigError) -> Vec<Problem> {
    let mut found: Vec<_> = error.diagnostics.iter().collect();
    found.sort_by_key(|found| found.span.as_ref().map(|span| span.start));
    found.into_iter().map(|found| Problem::of_file(error, found)).collect()
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { exit: Exit::Configuration, problems: of_file(&error) }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let exit = match &error {
            StartError::Listen { .. } => Exit::Upstream,
            StartError::Thread(_) => Exit::System,
            _ => Exit::Configuration,
        };
        let help = match &error {
            StartError::Upstream(UpstreamError::Address { .. }) => Some("write it as in `http://127.0.0.1:11434`"),
            _ => None,
        };
        Self::new(exit, error.to_string(), help.map(str::to_owned))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(Exit::Configuration, error.to_string(), Some(error.help()))
    }
}

impl From<VariablesError> for Failure {
    fn from(error: VariablesError) -> Self {
        let exit = if matches!(error, VariablesError::Written(_)) { Exit::No } else { Exit::Configuration };
        let help = error.help();
        Self::new(exit, error.to_string(), Some(help.to_owned()))
    }
}

impl From<SampleError> for Failure {
    fn from(error: SampleError) -> Self {
        Self::usage(error.to_string(), None)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::new(Exit::System, error.to_string(), Some(error.remedy().to_owned()))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::System, error.to_string(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harmless_text_is_as_long_as_the_text() {
        let text = "a\u{1b}[31m\r\n\tä\u{9b}\u{7f}";
        assert_eq!(harmless(text), "a?[31m \n\tä¿?");
        assert_eq!(harmless(text).len(), text.len());
    }
}
