//! From a line to a label.

use super::super::shell::{Command, Part, Redirect, Script, Word, parse};
use super::commands::{
    DATABASES, DESTRUCTIVE, DESTRUCTIVE_WITH, FETCHERS, HARMLESS, PROGRAMS, SAFE, SAFE_ALONE, SAFE_BUT,
    SAFE_SUBCOMMANDS, SHELLS, SINKS, STATEMENTS, SYSTEM, Subcommands, VERSION, VERSIONED, WRAPPERS,
};

/// How deep shells may start shells.
const DEPTH: usize = 8;

/// From the mildest to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// It is known to change nothing.
    Safe,
    /// Nobody knows.
    Unknown,
    /// It is known to take something away.
    Destructive,
}

impl Label {
    /// As in `safe`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unknown => "unknown",
            Self::Destructive => "destructive",
        }
    }
}

/// How far it reaches, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Radius {
    None,
    Unknown,
    Files,
    Project,
    System,
    Remote,
}

impl Radius {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unknown => "unknown",
            Self::Files => "files",
            Self::Project => "project",
            Self::System => "system",
            Self::Remote => "remote",
        }
    }
}

/// What a line would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) label: Label,
    pub(super) radius: Radius,
    pub(super) category: &'static str,
    pub(super) reason: String,
}

impl Finding {
    fn safe() -> Self {
        let reason = "every command of it only reads".to_owned();
        Self { label: Label::Safe, radius: Radius::None, category: "read", reason }
    }

    fn unknown(category: &'static str, reason: impl Into<String>) -> Self {
        Self { label: Label::Unknown, radius: Radius::Unknown, category, reason: reason.into() }
    }

    fn destructive(category: &'static str, radius: Radius, reason: impl Into<String>) -> Self {
        Self { label: Label::Destructive, radius, category, reason: reason.into() }
    }

    /// Of a call whose line is not where lines are.
    pub(super) fn unread() -> Self {
        Self::unknown("execution", "what it runs is not given as a line")
    }

    /// The worse of two; the first of equals.
    pub(super) fn or(self, other: Self) -> Self {
        if (other.label, other.radius) > (self.label, self.radius) { other } else { self }
    }
}

/// What a line would do.
pub(super) fn line(text: &str) -> Finding {
    script(text, 0)
}

/// What words would do that are started without a shell.
pub(super) fn arguments(words: &[&str]) -> Finding {
    let word = |text: &&str| Word { parts: vec![Part::Text((*text).to_owned())] };
    let command = Command { words: words.iter().map(word).collect(), ..Command::default() };
    command_of(&Script { commands: vec![command.clone()], understood: true }, &command, 0)
}

fn script(text: &str, depth: usize) -> Finding {
    if depth > DEPTH {
        return Finding::unknown("execution", "shells start shells too deep");
    }
    let script = parse(text);
    let found = script.commands.iter().map(|command| command_of(&script, command, depth));
    let found = found.fold(Finding::safe(), Finding::or);
    if script.understood { found } else { found.or(Finding::unknown("execution", "its grammar is not understood")) }
}

fn command_of(script: &Script, command: &Command, depth: usize) -> Finding {
    let around = command
        .assignments
        .iter()
        .map(|(name, _)| assignment(name))
        .chain(command.redirects.iter().map(redirect))
        .fold(Finding::safe(), Finding::or);
    around.or(words(script, command, &command.words, depth))
}

fn assignment(name: &str) -> Finding {
    if HARMLESS.contains(&name) || name.starts_with("LC_") {
        return Finding::safe();
    }
    Finding::unknown("environment", format!("it sets {name}"))
}

fn redirect(redirect: &Redirect) -> Finding {
    if !redirect.writes {
        return Finding::safe();
    }
    match redirect.target.fixed() {
        Some(target) if SINKS.contains(&target.as_str()) => Finding::safe(),
        Some(target) if is_of_the_system(&target) => {
            Finding::destructive("write", Radius::System, format!("it overwrites {target}"))
        }
        _ => Finding::unknown("write", "it writes a file"),
    }
}

fn is_of_the_system(path: &str) -> bool {
    SYSTEM.iter().any(|place| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// What some words run, as the words of `command`.
fn words(script: &Script, command: &Command, words: &[Word], depth: usize) -> Finding {
    let Some((first, rest)) = words.split_first() else { return Finding::safe() };
    let Some(path) = first.fixed().filter(|path| !path.is_empty()) else {
        return Finding::unknown("execution", "which program it runs is not known before it does");
    };
    if depth > DEPTH {
        return Finding::unknown("execution", "commands start commands too deep");
    }
    let (folder, name) = path.rsplit_once('/').map_or(("", path.as_str()), |(folder, name)| (folder, name));
    if let Some(found) = destructive(name, rest) {
        return found;
    }
    if name == "eval" {
        return evaluated(rest, depth);
    }
    if SHELLS.contains(&name) {
        return shell(script, command, rest, depth);
    }
    if !folder.is_empty() && !PROGRAMS.contains(&format!("{folder}/").as_str()) {
        return Finding::unknown("execution", "it runs a program that is not the system's");
    }
    if let Some((_, takes)) = WRAPPERS.iter().find(|(known, _)| *known == name)
        && !(name == "env" && rest.is_empty())
    {
        return wrapped(script, command, (name, takes), rest, depth);
    }
    if name == "find" && rest.iter().any(|word| word.beginning().starts_with("-exec")) {
        return executed(script, command, rest, depth);
    }
    if is_safe(name, rest) {
        Finding::safe()
    } else {
        Finding::unknown("execution", format!("what `{name}` does here is not known"))
    }
}

/// `find … -exec words ;`
fn executed(script: &Script, command: &Command, rest: &[Word], depth: usize) -> Finding {
    let is_exec = |word: &&Word| word.beginning().starts_with("-exec") || word.beginning().starts_with("-ok");
    let all = rest.iter().enumerate().filter(|(_, word)| is_exec(word)).map(|(place, _)| {
        let run = rest.get(place + 1..).unwrap_or_default();
        let end = run.iter().position(|word| matches!(word.fixed().as_deref(), Some(";" | "+")));
        words(script, command, run.get(..end.unwrap_or(run.len())).unwrap_or_default(), depth + 1)
    });
    all.fold(Finding::unknown("execution", "it runs a command for each file"), Finding::or)
}

fn wrapped(script: &Script, command: &Command, (name, takes): (&str, &[&str]), rest: &[Word], depth: usize) -> Finding {
    let mut rest = rest;
    let mut found = match name {
        "sudo" | "doas" | "chroot" => Finding::unknown("privilege", "it runs as somebody else"),
        "xargs" => Finding::unknown("execution", "its arguments are not known before it runs"),
        _ => Finding::safe(),
    };
    while let Some((word, behind)) = rest.split_first() {
        let Some(text) = word.fixed() else { break };
        let is_variable = name == "env" && text.contains('=') && !text.starts_with('-');
        if is_variable {
            found = found.or(assignment(text.split('=').next().unwrap_or_default()));
        } else if name == "env" && (text.starts_with("-S") || text.starts_with("--split")) {
            return found.or(Finding::unknown("execution", "it splits a text into a command"));
        } else if name == "command" && matches!(text.as_str(), "-v" | "-V") {
            return found;
        } else if !text.starts_with('-') || text == "-" {
            break;
        }
        rest = if takes.contains(&text.as_str()) { behind.get(1..).unwrap_or_default() } else { behind };
        if text == "--" {
            break;
        }
    }
    // A duration, a root.
    if matches!(name, "timeout" | "chroot") {
        rest = rest.get(1..).unwrap_or_default();
    }
    found.or(words(script, command, rest, depth + 1))
}

/// `sh -c line`, `sh file`, `… | sh`.
fn shell(source: &Script, command: &Command, rest: &[Word], depth: usize) -> Finding {
    let mut rest = rest;
    while let Some((word, behind)) = rest.split_first() {
        let Some(text) = word.fixed() else { break };
        if text.starts_with("--") && text != "--" {
            return Finding::unknown("execution", "it starts a shell with options that are not known");
        }
        if text.starts_with('-') && text.contains('c') {
            let line = behind.iter().find(|word| !word.beginning().starts_with('-')).and_then(Word::fixed);
            let line = line.map(|line| script(&line, depth + 1));
            return line
                .unwrap_or_else(|| Finding::unknown("execution", "the line for a shell is not known before it runs"));
        }
        if !text.starts_with('-') {
            return Finding::unknown("execution", "it runs a script");
        }
        rest = if matches!(text.as_str(), "-o" | "-O") { behind.get(1..).unwrap_or_default() } else { behind };
    }
    if let Some(stdin) = &command.stdin {
        return script(stdin, depth + 1);
    }
    let feeds = command.reads.and_then(|place| source.commands.get(place));
    if feeds.is_some_and(|feeds| {
        feeds.words.iter().any(|word| FETCHERS.contains(&word.fixed().unwrap_or_default().as_str()))
    }) {
        return Finding::destructive("execution", Radius::System, "it runs what it fetches from somewhere");
    }
    Finding::unknown("execution", "it runs a shell on what is not known")
}

fn evaluated(rest: &[Word], depth: usize) -> Finding {
    let words: Option<Vec<_>> = rest.iter().map(Word::fixed).collect();
    words.map_or_else(
        || Finding::unknown("execution", "what it evaluates is not known before it runs"),
        |words| script(&words.join(" "), depth + 1),
    )
}

fn destructive(name: &str, rest: &[Word]) -> Option<Finding> {
    let name = name.split_once('.').filter(|(program, _)| *program == "mkfs").map_or(name, |(program, _)| program);
    let reason = |how: &str| format!("`{name}{how}` takes away what is there");
    if let Some((_, category, radius)) = DESTRUCTIVE.iter().find(|(known, ..)| *known == name) {
        let system = rest.iter().any(is_a_root);
        return Some(Finding::destructive(category, if system { Radius::System } else { *radius }, reason("")));
    }
    let known: Vec<String> = rest.iter().filter_map(Word::fixed).collect();
    let row = DESTRUCTIVE_WITH.iter().find(|(program, wanted, ..)| {
        *program == name && wanted.iter().all(|wanted| known.iter().any(|word| is_there(wanted, word)))
    });
    if let Some((_, wanted, category, radius)) = row {
        return Some(Finding::destructive(
            category,
            *radius,
            reason(&format!(" {}", wanted.join(" ").replace('*', "…"))),
        ));
    }
    let states = |word: &String| {
        let word = word.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ") + " ";
        STATEMENTS.iter().any(|statement| word.contains(statement))
    };
    (DATABASES.contains(&name) && known.iter().any(states))
        .then(|| Finding::destructive("database", Radius::Remote, reason("")))
}

/// A wanted word; a short option may stand among others.
fn is_there(wanted: &str, word: &str) -> bool {
    if let Some(beginning) = wanted.strip_suffix('*') {
        return word.starts_with(beginning);
    }
    let letter = wanted.strip_prefix('-').filter(|letter| letter.len() == 1);
    let bundled =
        || letter.is_some_and(|letter| word.starts_with('-') && !word.starts_with("--") && word.contains(letter));
    word.eq_ignore_ascii_case(wanted) && letter.is_none() || word == wanted || bundled()
}

/// The root, the home directory, a folder of the system, or all that is in one of them.
fn is_a_root(word: &Word) -> bool {
    match word.parts.as_slice() {
        [Part::Variable(_)] | [Part::Glob(_)] => true,
        [Part::Variable(_), Part::Text(rest)] => rest == "/",
        [Part::Variable(_), Part::Text(rest), Part::Glob(_)] => rest == "/",
        [Part::Text(path)] | [Part::Text(path), Part::Glob(_)] => {
            let is_top = path.trim_end_matches('/').matches('/').count() <= 1 && is_of_the_system(path);
            path == "/" || path == "/home" || path == ".." || is_top
        }
        _ => false,
    }
}

fn is_safe(name: &str, rest: &[Word]) -> bool {
    if SAFE.contains(&name) {
        // `tail -f` waits, `cat` shows: none of them writes. But `printf -v PATH …` and `test -v a[$(…)]` do more.
        return !(matches!(name, "printf" | "test" | "[")
            && rest.iter().any(|word| word.beginning().starts_with("-v") || is_open_option(word)));
    }
    if rest.is_empty() {
        return SAFE_ALONE.contains(&name) || SAFE_BUT.iter().any(|(known, _)| *known == name);
    }
    if let [only] = rest
        && VERSIONED.contains(&name)
        && only.fixed().as_deref() == Some(VERSION)
    {
        return true;
    }
    // From here on an argument that is not known might be any option.
    if rest.iter().any(|word| is_open_option(word) || (word.beginning().is_empty() && word.fixed().is_none())) {
        return false;
    }
    if let Some((_, spoilers)) = SAFE_BUT.iter().find(|(known, _)| *known == name) {
        return !is_spoiled(rest, spoilers);
    }
    match name {
        "sed" => is_print_only(rest),
        "date" => rest.iter().all(|word| word.beginning().starts_with(['+', '-'])) && !is_spoiled(rest, &["-s", "--s"]),
        _ => SAFE_SUBCOMMANDS.iter().any(|known| known.program == name && is_safe_subcommand(known, rest)),
    }
}

/// `-{delete,print}`, `-$x`: an option, and nobody knows which.
fn is_open_option(word: &Word) -> bool {
    word.beginning().starts_with('-') && word.fixed().is_none()
}

fn is_safe_subcommand(known: &Subcommands, mut rest: &[Word]) -> bool {
    while let Some((word, behind)) = rest.split_first() {
        let Some(text) = word.fixed() else { return false };
        if known.safe.contains(&text.as_str()) {
            return !is_spoiled(behind, known.spoilers);
        }
        if known.options.contains(&text.as_str()) {
            rest = behind;
        } else if known.options.contains(&format!("{text}=").as_str()) {
            rest = behind.get(1..).unwrap_or_default();
        } else {
            return false;
        }
    }
    false
}

/// Options count wherever they stand, short ones also among others.
fn is_spoiled(rest: &[Word], spoilers: &[&str]) -> bool {
    let spoils = |word: &Word, spoiler: &&str| {
        let beginning = word.beginning();
        let letter = spoiler.strip_prefix('-').filter(|letter| letter.len() == 1);
        let bundled = letter.is_some_and(|letter| {
            beginning.starts_with('-') && !beginning.starts_with("--") && beginning.contains(letter)
        });
        beginning.starts_with(spoiler) || bundled
    };
    rest.iter().any(|word| spoilers.iter().any(|spoiler| spoils(word, spoiler)))
}

/// `sed -n '1,20p' file`.
fn is_print_only(rest: &[Word]) -> bool {
    let words: Option<Vec<String>> = rest.iter().map(Word::fixed).collect();
    let Some(words) = words else { return false };
    match words.as_slice() {
        [option, address, files @ ..] if option == "-n" => {
            let is_address = address.strip_suffix('p').is_some_and(|lines| {
                !lines.is_empty() && lines.chars().all(|char| char.is_ascii_digit() || matches!(char, ',' | '$'))
            });
            is_address && files.iter().all(|file| !file.starts_with('-'))
        }
        _ => false,
    }
}
