//! What could stand where the person writes: commands, what they take, agents and files.

use super::super::wire::{Choice, Facts};
use super::slash::{SLASHES, find};

/// Rows that are offered at most.
const ROWS: usize = 100;

/// What is offered for a part of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Popup {
    /// Where that part begins.
    pub(crate) from: usize,
    pub(crate) rows: Vec<Choice>,
    pub(crate) chosen: usize,
    pub(crate) kind: Kind,
}

/// What rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Commands,
    Arguments,
    /// Agents and files.
    Names,
}

impl Popup {
    /// What fits what stands before the cursor.
    pub(crate) fn of(before: &str, facts: &Facts, files: &[String]) -> Option<Self> {
        let (from, rows, kind) = if let Some(line) = before.strip_prefix('/') {
            match line.split_once(' ') {
                None => (0, commands(line, facts), Kind::Commands),
                Some((name, words)) => {
                    let choices = find(name)?.takes.choices(facts);
                    (before.len().saturating_sub(words.len()), best(choices.into_iter(), words), Kind::Arguments)
                }
            }
        } else {
            let from = before.rfind('@')?;
            let (ahead, name) = before.split_at_checked(from)?;
            let name = name.strip_prefix('@')?;
            if name.contains(char::is_whitespace) || !(ahead.is_empty() || ahead.ends_with([' ', '\n', '\t', '(', '"']))
            {
                return None;
            }
            let files = files.iter().map(|name| Choice { name: name.clone(), about: String::new() });
            (from.saturating_add(1), best(facts.agents.iter().cloned().chain(files), name), Kind::Names)
        };
        (!rows.is_empty()).then_some(Self { from, rows, chosen: 0, kind })
    }

    pub(crate) fn chosen(&self) -> Option<&Choice> {
        self.rows.get(self.chosen)
    }

    pub(crate) fn up(&mut self) {
        self.chosen = self.chosen.checked_sub(1).unwrap_or(self.rows.len().saturating_sub(1));
    }

    pub(crate) fn down(&mut self) {
        self.chosen = self.chosen.saturating_add(1);
        if self.chosen >= self.rows.len() {
            self.chosen = 0;
        }
    }
}

fn commands(name: &str, facts: &Facts) -> Vec<Choice> {
    let own = SLASHES.iter().map(|slash| (slash.name, slash.about));
    let prompts = facts.prompts.iter().map(|prompt| (&*prompt.name, &*prompt.about));
    let fits = own.chain(prompts).filter(|(known, _)| known.starts_with(name));
    fits.map(|(known, about)| Choice { name: format!("/{known}"), about: about.to_owned() }).collect()
}

/// The choices that fit, the best first.
fn best(choices: impl Iterator<Item = Choice>, words: &str) -> Vec<Choice> {
    let words = words.to_lowercase();
    let mut found: Vec<_> = choices.filter_map(|choice| Some((rank(&choice.name, &words)?, choice))).collect();
    if !words.is_empty() {
        found.sort_by_key(|(rank, _)| *rank);
    }
    found.into_iter().take(ROWS).map(|(_, choice)| choice).collect()
}

/// How well a name fits, the better the less: at the beginning of its last part, of itself, anywhere, or letter by letter;
/// of equals the shorter one.
fn rank(name: &str, words: &str) -> Option<(u8, usize)> {
    let lower = name.to_lowercase();
    let last = lower.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let kind = if last.starts_with(words) {
        0
    } else if lower.starts_with(words) {
        1
    } else if lower.contains(words) {
        2
    } else {
        let mut letters = lower.chars();
        words.chars().all(|letter| letters.any(|other| other == letter)).then_some(3)?
    };
    Some((kind, name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(before: &str) -> Vec<String> {
        let facts = Facts { agents: vec![Choice { name: "coder".into(), about: "writes".into() }], ..Facts::default() };
        let files = ["src/main.rs", "src/model/mod.rs", "docs/main page.md"].map(str::to_owned);
        Popup::of(before, &facts, &files)
            .map(|popup| popup.rows.into_iter().map(|row| row.name).collect())
            .unwrap_or_default()
    }

    #[test]
    fn commands_by_their_beginning() {
        assert_eq!(names("/mo"), ["/model", "/mode"]);
        assert_eq!(names("/mode bal"), ["balanced"]);
        assert_eq!(names("/compact x"), [""; 0]);
        assert_eq!(names("say /mo"), [""; 0]);
    }

    #[test]
    fn files_and_agents_behind_an_at() {
        assert_eq!(names("see @mai"), ["src/main.rs", "docs/main page.md"]);
        assert_eq!(names("@co"), ["coder", "src/model/mod.rs"]);
        assert_eq!(names("@smod"), ["src/model/mod.rs"]);
        assert_eq!(names("me@mai"), [""; 0]);
        assert_eq!(names("@main x"), [""; 0]);
    }
}
