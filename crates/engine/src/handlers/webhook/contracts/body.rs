//! A JSON value whose strings hold fields of the event, as in `{{ .output_text }}`.

use gatehook_events::input::FIELDS;
use serde_json::{Map, Value};

use crate::config::did_you_mean;

/// Names beside the event's own fields.
const MADE: &[&str] = &["text", "texts"];

/// A value, read once.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    Fixed(Value),
    /// One field alone: it keeps its type.
    Whole(Vec<String>),
    Text(Vec<Piece>),
    List(Vec<Body>),
    Map(Vec<(String, Body)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Literal(String),
    Field(Vec<String>),
}

impl Body {
    /// Reads a value; an error says what is wrong with which string.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => match pieces(text)?.as_slice() {
                [] => Body::Fixed(Value::from("")),
                [Piece::Literal(text)] => Body::Fixed(Value::from(text.as_str())),
                [Piece::Field(path)] => Body::Whole(path.clone()),
                pieces => Body::Text(pieces.to_vec()),
            },
            Value::Array(items) => Body::List(items.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| Ok((key.clone(), Self::parse(value)?)));
                Body::Map(entries.collect::<Result<_, String>>()?)
            }
            fixed => Body::Fixed(fixed.clone()),
        })
    }

    /// The value with the fields in it. A field that the event does not have is null where it stands alone, and empty
    /// within text.
    pub(super) fn render(&self, fields: &Map<String, Value>) -> Value {
        match self {
            Body::Fixed(value) => value.clone(),
            Body::Whole(path) => find(fields, path).cloned().unwrap_or_default(),
            Body::Text(pieces) => pieces.iter().map(|piece| piece.render(fields)).collect::<String>().into(),
            Body::List(items) => items.iter().map(|item| item.render(fields)).collect(),
            Body::Map(entries) => {
                Value::Object(entries.iter().map(|(key, body)| (key.clone(), body.render(fields))).collect())
            }
        }
    }
}

impl Piece {
    fn render(&self, fields: &Map<String, Value>) -> String {
        match self {
            Piece::Literal(text) => text.clone(),
            Piece::Field(path) => match find(fields, path) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            },
        }
    }
}

fn find<'a>(fields: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(fields.get(first)?, |value, key| value.get(key))
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    let literal = |text: &str, pieces: &mut Vec<Piece>| {
        if !text.is_empty() {
            pieces.push(Piece::Literal(text.to_owned()));
        }
    };
    while let Some((before, tail)) = rest.split_once("{{") {
        literal(before, &mut pieces);
        let (name, after) = tail.split_once("}}").ok_or("a `{{` has no `}}`")?;
        pieces.push(Piece::Field(field(name.trim())?));
        rest = after;
    }
    literal(rest, &mut pieces);
    Ok(pieces)
}

fn field(name: &str) -> Result<Vec<String>, String> {
    let path: Vec<String> = name.strip_prefix('.').unwrap_or(name).split('.').map(str::to_owned).collect();
    let first = path.first().map(String::as_str).unwrap_or_default();
    let known = || FIELDS.iter().map(|field| field.name).chain(MADE.iter().copied());
    if known().any(|name| name == first) && path.iter().all(|part| !part.is_empty()) {
        return Ok(path);
    }
    let meant = did_you_mean(first, known()).map(|meant| format!("; {meant}")).unwrap_or_default();
    Err(format!("no event has a field `{}`{meant}", name.escape_debug()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rendered(body: &Value) -> Value {
        let fields = json!({"prompt": "hi", "messages": [{"role": "user"}], "tool_input": {"n": 1}, "stream": true});
        Body::parse(body).unwrap().render(fields.as_object().unwrap())
    }

    #[test]
    fn a_field_alone_keeps_its_type_and_within_text_it_is_text() {
        for (body, want) in [
            (json!("{{ .prompt }}"), json!("hi")),
            (json!("{{prompt}}!"), json!("hi!")),
            (json!("{{ messages }}"), json!([{"role": "user"}])),
            (json!("m={{ .messages }}, n={{ .tool_input.n }}"), json!(r#"m=[{"role":"user"}], n=1"#)),
            (json!("{{ .stream }}"), json!(true)),
            (json!("{{ .user }}"), Value::Null),
            (json!("by {{ .user }}"), json!("by ")),
            (json!({"a": ["{{ .prompt }}", 1, null]}), json!({"a": ["hi", 1, null]})),
            (json!("a } b { c"), json!("a } b { c")),
            (json!(""), json!("")),
        ] {
            assert_eq!(rendered(&body), want, "{body}");
        }
    }

    #[test]
    fn what_no_event_has_is_refused() {
        for body in ["{{ .promt }}", "{{ }}", "{{ .", "{{ .prompt..x }}", "{{ $x }}", "{{ .prompt | lower }}"] {
            assert!(Body::parse(&json!(body)).is_err(), "{body}");
        }
        assert!(Body::parse(&json!("{{ .promt }}")).unwrap_err().contains("did you mean `prompt`?"));
    }

    #[test]
    fn what_a_field_holds_is_not_read_again() {
        let fields = json!({"prompt": "{{ .user }}", "user": "u"});
        let body = Body::parse(&json!("say {{ .prompt }}")).unwrap();
        assert_eq!(body.render(fields.as_object().unwrap()), json!("say {{ .user }}"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_body_or_an_error(text in ".{0,40}|[{}. a-z]{0,30}") {
            if let Ok(body) = Body::parse(&Value::from(text)) {
                body.render(&Map::new());
            }
        }
    }
}
