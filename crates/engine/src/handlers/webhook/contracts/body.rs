//! A JSON value whose strings are templates.

use serde_json::Value;

use crate::template::{Missing, Template, TemplateError};

/// Names beside the event's own fields: all judged texts as one, and one by one.
const MADE: &[&str] = &["text", "texts"];

/// A value, read once.
pub(super) enum Body {
    Fixed(Value),
    /// One `{{ … }}` alone: its value keeps its type. The template writes it as JSON.
    Whole(Template),
    Text(Template),
    List(Vec<Body>),
    Map(Vec<(String, Body)>),
}

impl Body {
    /// Reads a value; an error says what is wrong with which string.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) if text.contains("{{") => {
                let template = Template::parse(text).and_then(|it| it.check_names(MADE).map(|()| it));
                let template = template.map_err(|error| format!("{error} in `{text}`, at byte {}", error.offset))?;
                whole(text).map_or(Body::Text(template), Body::Whole)
            }
            Value::Array(items) => Body::List(items.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| Ok((key.clone(), Self::parse(value)?)));
                Body::Map(entries.collect::<Result<_, String>>()?)
            }
            fixed => Body::Fixed(fixed.clone()),
        })
    }

    /// The value with the event's fields in it.
    pub(super) fn render(&self, fields: &Value) -> Result<Value, TemplateError> {
        Ok(match self {
            Body::Fixed(value) => value.clone(),
            // What was written as JSON can be read.
            Body::Whole(template) => serde_json::from_str(&template.render(fields, Missing::Zero)?).unwrap_or_default(),
            Body::Text(template) => template.render(fields, Missing::Zero)?.into(),
            Body::List(items) => items.iter().map(|item| item.render(fields)).collect::<Result<_, _>>()?,
            Body::Map(entries) => {
                let entries = entries.iter().map(|(key, body)| Ok((key.clone(), body.render(fields)?)));
                Value::Object(entries.collect::<Result<_, TemplateError>>()?)
            }
        })
    }
}

/// The template of one value as JSON, where a text is nothing but that value.
fn whole(text: &str) -> Option<Template> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    if inside.contains("{{") || inside.contains("}}") {
        return None;
    }
    Template::parse(&format!("{{{{ toJSON ({inside}) }}}}")).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rendered(body: &Value) -> Value {
        let fields = json!({"prompt": "hi", "messages": [{"role": "user"}], "tool_input": {"n": 1}, "stream": true});
        Body::parse(body).unwrap().render(&fields).unwrap()
    }

    #[test]
    fn a_value_alone_keeps_its_type_and_within_text_it_is_text() {
        for (body, want) in [
            (json!("{{ .prompt }}"), json!("hi")),
            (json!("{{.Prompt}}!"), json!("hi!")),
            (json!("{{ messages }}"), json!([{"role": "user"}])),
            (json!("m={{ toJSON .messages }}, n={{ .tool_input.n }}"), json!(r#"m=[{"role":"user"}], n=1"#)),
            (json!(" {{ .stream }} "), json!(true)),
            (json!("{{ .tool_input.n }}"), json!(1)),
            (json!("{{ .tool_input.none }}"), Value::Null),
            (json!("{{ .user }}"), json!("")),
            (json!("by {{ .user }}"), json!("by ")),
            (json!("{{ truncate 1 .prompt }}"), json!("h…")),
            (json!("{{ .prompt }}{{ .prompt }}"), json!("hihi")),
            (json!("{{ if .stream }}s{{ end }}"), json!("s")),
            (json!("{{- .prompt -}}"), json!("hi")),
            (json!({"a": ["{{ .prompt }}", 1, null]}), json!({"a": ["hi", 1, null]})),
            (json!("a } b { c"), json!("a } b { c")),
            (json!(""), json!("")),
        ] {
            assert_eq!(rendered(&body), want, "{body}");
        }
    }

    #[test]
    fn what_no_event_has_is_refused_at_load() {
        for body in
            ["{{ .promt }}", "{{ }}", "{{ .", "{{ .prompt..x }}", "{{ $x }}", "{{ .prompt | lower }}", "{{ nope }}"]
        {
            assert!(Body::parse(&json!([body])).is_err(), "{body}");
        }
    }

    #[test]
    fn what_a_field_holds_is_not_read_again() {
        let fields = json!({"prompt": "{{ .user }}", "user": "u"});
        for (body, want) in [("say {{ .prompt }}", "say {{ .user }}"), ("{{ .prompt }}", "{{ .user }}")] {
            assert_eq!(Body::parse(&json!(body)).unwrap().render(&fields).unwrap(), json!(want));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_body_or_an_error(text in ".{0,40}|[{}(). a-z]{0,30}") {
            if let Ok(body) = Body::parse(&Value::from(text)) {
                let _ = body.render(&json!({}));
            }
        }
    }
}
