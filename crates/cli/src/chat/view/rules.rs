//! Which rules a person may take along with an answer: from the one that means this very call to the one that means every
//! call of its tool.

use gatehook_agent::approval::{Question, Rule};
use gatehook_engine::builtins::safer_shell::FIELDS;
use serde_json::Value;

/// Arguments that name a file.
const PATHS: [&str; 3] = ["path", "file_path", "filename"];

/// Rules from the narrowest to the widest, and which of them is offered first.
pub(crate) fn rules(question: &Question) -> (Vec<Rule>, usize) {
    let text =
        |name: &&str| question.tool_input.get(*name).and_then(Value::as_str).map(|value| (name.to_string(), value));
    let is_destructive = question.metadata.get("safety_label").is_some_and(|label| label == "destructive");
    let tool = escaped(&question.tool_name);
    let (texts, first) = if let Some((name, line)) = FIELDS.iter().find_map(text) {
        let words = words(line).map(|words| format!("{tool}:{name}={}*", escaped(words)));
        let has_words = words.is_some();
        let texts: Vec<String> =
            std::iter::once(format!("{tool}:{name}={}", escaped(line))).chain(words).chain([tool]).collect();
        (texts, usize::from(has_words && !is_destructive))
    } else if let Some((name, path)) = PATHS.iter().find_map(text) {
        let folder = path.rsplit_once('/').map(|(folder, _)| format!("{tool}:{name}={}/*", escaped(folder)));
        let texts: Vec<String> =
            std::iter::once(format!("{tool}:{name}={}", escaped(path))).chain(folder).chain([tool]).collect();
        let last = texts.len().saturating_sub(1);
        (texts, if is_destructive { 0 } else { last })
    } else {
        (vec![tool], 0)
    };
    let wanted = texts.get(first).cloned().unwrap_or_default();
    // A rule is one line that can be read as it is. Where the one that would be offered is none, the person is offered no
    // wider one in its place.
    let readable = texts.into_iter().filter(|text| super::super::clean::line(text) == *text && text.len() <= 400);
    let rules: Vec<Rule> = readable.filter_map(|text| text.parse().ok()).collect();
    match rules.iter().position(|rule| rule.to_string() == wanted) {
        Some(first) => (rules, first),
        None => (Vec::new(), 0),
    }
}

/// The words that say what a command does: its name, and what it is told to do if that is a word too.
fn words(line: &str) -> Option<&str> {
    let is_simple = !line.contains(|char: char| ";&|<>()$`\\".contains(char) || char.is_control());
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|char| char.is_ascii_alphanumeric() || "-_".contains(char));
    let name = line.split(' ').next().filter(|name| is_simple && is_word(name) && !name.starts_with('-'))?;
    let told = line.get(name.len()..)?.strip_prefix(' ')?.split(' ').next().unwrap_or_default();
    let told = if is_word(told) && told.starts_with(|char: char| char.is_ascii_lowercase()) { told } else { "" };
    let end = if told.is_empty() { name.len() } else { name.len().saturating_add(1).saturating_add(told.len()) };
    line.get(..end)
}

/// A text that means itself in a rule.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, char) in text.char_indices() {
        match char {
            '*' | '?' | '[' | ']' | '\\' => escaped.extend(['\\', char]),
            // It would begin an argument of the rule.
            ':' if names_argument(text.get(at..).unwrap_or_default()) => escaped.push_str("[:]"),
            char => escaped.push(char),
        }
    }
    escaped
}

/// Whether a text begins as in `:name=`.
fn names_argument(text: &str) -> bool {
    let name = text.strip_prefix(':').and_then(|text| text.split_once('='));
    name.is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn offered(tool: &str, input: Value, label: &str) -> (Vec<String>, usize) {
        let question = Question {
            tool_name: tool.into(),
            tool_use_id: None,
            tool_input: Arc::new(input.as_object().unwrap().clone()),
            reason: String::new(),
            metadata: [("safety_label".to_owned(), label.to_owned())].into(),
        };
        let (rules, first) = rules(&question);
        (rules.iter().map(ToString::to_string).collect(), first)
    }

    #[test]
    fn of_a_command_its_words_are_offered() {
        let (rules, first) = offered("bash", json!({"command": "git push origin"}), "unknown");
        assert_eq!(rules, ["bash:command=git push origin", "bash:command=git push*", "bash"]);
        assert_eq!(first, 1);
        assert_eq!(offered("bash", json!({"command": "rm -rf x"}), "destructive").1, 0);
        let (rules, _) = offered("bash", json!({"command": "a; b *"}), "unknown");
        assert_eq!(rules, [r"bash:command=a; b \*", "bash"]);
    }

    #[test]
    fn of_a_file_its_folder_and_the_tool_are_offered() {
        let (rules, first) = offered("edit", json!({"path": "src/a.rs", "old": "", "new": ""}), "unknown");
        assert_eq!(rules, ["edit:path=src/a.rs", "edit:path=src/*", "edit"]);
        assert_eq!(first, 2);
    }

    #[test]
    fn what_cannot_be_read_as_it_is_is_no_rule() {
        assert_eq!(offered("bash", json!({"command": "a\nb"}), "unknown").0, [""; 0]);
        assert_eq!(offered("x", json!({}), "unknown").0, ["x"]);
    }
}
