//! Texts with holes: prompts of model judges, and requests made of an event.
//!
//! The language is the part of Go's `text/template` (<https://pkg.go.dev/text/template>) that such texts use:
//!
//! - `{{ .ToolName }}`, `{{ .ToolInput.cmd }}`: a field by docker-agent's name, and a key of a map. The payload's own
//!   names do too: `{{ .tool_name }}`, and without a dot, wherever it stands, `{{ tool_name }}`. `$` is the whole input.
//! - `{{ .ToolInput | toJSON }}`, `{{ truncate 500 .Prompt }}`: functions and pipes. The functions are `toJSON`,
//!   `truncate`, `default`, `printf` (`%s %v %d %q %%`), `print`, `len`, `index`, `eq`, `ne`, `lt`, `le`, `gt`, `ge`,
//!   `and`, `or`, `not`.
//! - `{{ if … }} {{ else if … }} {{ else }} {{ end }}`, `{{ range … }}`, `{{ with … }}`, comments, and `{{- … -}}` to
//!   trim blanks around.
//!
//! There are no variables, no definitions and no other functions: what is not known is an error when it is parsed.
//! `truncate` counts bytes as Go does, but never splits a character. Nothing that is put in is read as a template.
//!
//! ```
//! use gatehook_engine::template::{Missing, Template};
//! use serde_json::json;
//!
//! let template = Template::parse("{{ .ToolName }} wants {{ truncate 12 (toJSON .ToolInput) }}")?;
//! let input = json!({"tool_name": "shell", "tool_input": {"cmd": "rm -rf /"}});
//! assert_eq!(template.render(&input, Missing::Error)?, r#"shell wants {"cmd":"rm -…"#);
//!
//! let error = Template::parse("{{ .ToolName | shout }}").unwrap_err();
//! assert_eq!((error.offset, error.message.as_str()), (15, "there is no function `shout`"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod functions;
mod lex;
mod names;
mod parse;
mod render;
#[cfg(test)]
mod tests;

use serde_json::Value;

/// Bytes of a rendered text.
pub const MAX_RENDERED: usize = 4 << 20;

/// A text with holes, parsed.
#[derive(Debug, Clone)]
pub struct Template {
    nodes: Vec<parse::Node>,
}

/// What is wrong with a template, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// The place in the template, in bytes.
    pub offset: usize,
    /// A sentence fragment.
    pub message: String,
}

impl TemplateError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into() }
    }
}

/// What a key means that a map does not have. A field of the payload that is not filled is empty under both (`""`, 0,
/// `false`, an empty map or list), and a field that no payload has is an error under both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// There is no text.
    Error,
    /// It is written as `<no value>`, as Go does.
    Zero,
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::parse(text).map(|nodes| Self { nodes })
    }

    /// Whether every name that leads from the whole input is a field of a payload, or one of those that are `made` by
    /// who renders it; the error has the place of one that is not.
    pub fn check_names(&self, made: &[&str]) -> Result<(), TemplateError> {
        names::check(&self.nodes, made)
    }

    /// The text for one input, as [`Input::to_json`](gatehook_events::Input::to_json) gives it; what is longer than
    /// [`MAX_RENDERED`] is an error.
    pub fn render(&self, input: &Value, missing: Missing) -> Result<String, TemplateError> {
        render::render(&self.nodes, input, missing)
    }
}
