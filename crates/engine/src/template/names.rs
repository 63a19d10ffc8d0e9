//! Which names of the payload a template uses.

use super::TemplateError;
use super::parse::{Expression, ExpressionKind, Node};
use super::render::is_field;

/// Whether all names that lead from the whole input are fields of a payload, or are `made` by who renders it.
pub(super) fn check(nodes: &[Node], made: &[&str]) -> Result<(), TemplateError> {
    Names { made }.nodes(nodes, true)
}

struct Names<'a> {
    made: &'a [&'a str],
}

impl Names<'_> {
    /// `is_input` says whether `.` is the whole input there.
    fn nodes(&self, nodes: &[Node], is_input: bool) -> Result<(), TemplateError> {
        nodes.iter().try_for_each(|node| {
            let (value, body, otherwise, inner) = match node {
                Node::Text(_) => return Ok(()),
                Node::Show(value) => return self.expression(value, is_input),
                Node::If { value, body, otherwise } => (value, body, otherwise, is_input),
                Node::With { value, body, otherwise } | Node::Range { value, body, otherwise } => {
                    (value, body, otherwise, false)
                }
            };
            self.expression(value, is_input)?;
            self.nodes(body, inner)?;
            self.nodes(otherwise, is_input)
        })
    }

    fn expression(&self, expression: &Expression, is_input: bool) -> Result<(), TemplateError> {
        match &expression.kind {
            ExpressionKind::Literal(_) => Ok(()),
            ExpressionKind::Dot(names) if is_input => self.name(expression.at, names),
            ExpressionKind::Dot(_) => Ok(()),
            ExpressionKind::Root(names) => self.name(expression.at, names),
            ExpressionKind::Within(value, _) => self.expression(value, is_input),
            ExpressionKind::Call(_, arguments) => arguments.iter().try_for_each(|one| self.expression(one, is_input)),
        }
    }

    fn name(&self, at: usize, names: &[String]) -> Result<(), TemplateError> {
        match names.first() {
            Some(name) if !is_field(name) && !self.made.contains(&name.as_str()) => {
                Err(TemplateError::new(at, format!("no event has a field `{name}`")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::template::Template;

    #[test]
    fn a_name_that_no_payload_has_is_found_where_it_stands() {
        for (text, at) in [
            ("{{ .Promt }}", Some(3)),
            ("{{ if .prompt }}{{ truncate 5 .promt }}{{ end }}", Some(30)),
            ("{{ with .tool_input }}{{ $.nope }}{{ end }}", Some(25)),
            ("{{ range .messages }}{{ .content }}{{ else }}{{ .content }}{{ end }}", Some(48)),
            ("{{ range .messages }}{{ .content }}{{ end }}{{ .ToolName }}{{ tool_name }}", None),
            ("{{ .tool_input.anything }}{{ .text }}{{ . }}", None),
        ] {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.check_names(&["text"]).err().map(|error| error.offset), at, "{text}");
        }
    }
}
