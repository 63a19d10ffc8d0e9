//! Values as YAML that any reader takes for what they are.

use serde_json::Value;

/// Plain words that are no text.
const NO_TEXT: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A value behind a key. Lines of a text of several stand below it, this far in.
pub(super) fn scalar(value: &Value, indent: usize) -> String {
    match value {
        Value::String(text) if is_block(text) => block(text, indent),
        value => flow(value),
    }
}

/// In one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", quoted(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        value => value.to_string(),
    }
}

/// A word, or a length of time, that needs no quotes.
fn is_plain(text: &str) -> bool {
    let number = text.strip_suffix("ms").or_else(|| text.strip_suffix('s'));
    if number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())) {
        return true;
    }
    let is_word = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | '/');
    text.starts_with(|char: char| char.is_ascii_alphabetic())
        && text.chars().all(is_word)
        && !NO_TEXT.contains(&text.to_ascii_lowercase().as_str())
}

/// What is escaped in JSON is in YAML too; the rest of what YAML cannot hold is escaped by its number.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json.chars().fold(String::with_capacity(json.len()), |mut out, char| {
        match char {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            char => out.push(char),
        }
        out
    })
}

/// A text of several lines that can stand as it is.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let is_good = |line: &str| line.is_empty() || (!line.trim().is_empty() && !line.starts_with('\t'));
    let is_printable =
        |char: char| char == '\n' || (' '..='~').contains(&char) || ('\u{a0}'..='\u{2027}').contains(&char);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n', '\t'])
        && body.split('\n').all(is_good)
        && text.chars().all(is_printable)
}

fn block(text: &str, indent: usize) -> String {
    let (style, body) = match text.strip_suffix('\n') {
        Some(body) => ("|", body),
        None => ("|-", text),
    };
    let pad = " ".repeat(indent);
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("\n{pad}{line}") };
    std::iter::once(style.to_owned()).chain(body.split('\n').map(line)).collect()
}

#[cfg(test)]
mod tests {
    use gatehook_engine::config::{Document, Format};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Value {
        let text = format!("a:\n  - b: {}\n    c: 1\n", scalar(value, 6));
        let document = Document::parse("x", &text, Format::Yaml).unwrap_or_else(|error| panic!("{error}\n{text}"));
        document.root.to_json()["a"][0]["b"].clone()
    }

    #[test]
    fn a_value_is_read_as_it_was() {
        for value in [
            json!("true"),
            json!("~"),
            json!("1.5"),
            json!("a: b # c"),
            json!("e5"),
            json!("set -e\n\n  grep x\nexit 2"),
            json!("set -e\nexit 2\n"),
            json!("a\n\n"),
            json!("a\n \nb"),
            json!("\ta\nb"),
            json!("a\n\tb"),
            json!("- a\n# b"),
            json!("\u{85}\u{2028}\u{feff}\u{7f}\u{1}"),
            json!(["a b", "no", 5, true]),
            json!({"X-Key": "${env.KEY}", "a": null}),
        ] {
            assert_eq!(read(&value), value, "{}", scalar(&value, 6));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was(text in "[a-c\\-#:'\"|>{}\\[\\] \\n\\t\\\\&*!%@]{0,24}|\\PC{0,12}|.{0,6}\\n.{0,6}") {
            prop_assert_eq!(read(&json!(text)), json!(text));
        }
    }
}
