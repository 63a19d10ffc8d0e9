//! `models` of a file.

use gatehook_engine::config::{DiagnosticKind, Field, ReadOptions, Section, Shape};
use http::{HeaderValue, Uri};
use url::Url;

use super::{Habits, ModelConfig, ModelPlace, Prices};
use crate::settings::{KIND, KIND_WORDS, variable};

/// One of `models`.
pub const MODEL: &[Field] = &[
    Field::new("kind", Shape::Word(KIND_WORDS), "What it speaks.").default("that of its provider"),
    Field::new("base_url", Shape::Text, "Where it is: `http://host:port/base` or `https://…`, with `/v1` or without.")
        .default("that of its provider"),
    Field::new("api_key", Shape::Text, "The credential it wants; `${env.NAME}` names a variable.")
        .default("where it has no `base_url`, its provider's variable"),
    Field::new("api_key_file", Shape::Text, "A file that holds it."),
    Field::new("input_price", Shape::Number, "What a million tokens of questions cost.").default("unknown"),
    Field::new("output_price", Shape::Number, "What a million tokens of answers cost.").default("unknown"),
    Field::new("window", Shape::Integer, "An agent's: tokens that question and answer may have together.")
        .default("what its server says"),
    Field::new("max_tokens", Shape::Integer, "An agent's: tokens that an answer may have.")
        .default("what its server takes"),
    Field::new("options", Shape::Any, "An agent's: further members of its questions, as `temperature: 0`.")
        .default("none"),
];

/// A key as it stands in a header; `None` where it cannot.
pub(super) fn api_key(key: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(key.trim()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What a file says of one model; what is wrong is reported.
pub(crate) fn model(name: &str, section: &Section<'_>, options: &ReadOptions<'_>) -> Option<ModelConfig> {
    let before = section.context.diagnostics.len();
    if !name.contains('/') {
        let problem = section.problem(DiagnosticKind::InvalidValue, format!("`{name}` names no provider"));
        section.report(problem.at(section.head()).help("write it as in `ollama/llama3` or `ollama/*`"));
    }
    let place = ModelPlace {
        kind: section.choice("kind", &KIND),
        base_url: section.text("base_url").and_then(|url| base_url(section, url)),
        api_key: written_key(section, options),
    };
    let is_said = ["kind", "base_url", "api_key", "api_key_file"].iter().any(|name| section.node(name).is_some());
    let prices = price(section, "input_price").zip(price(section, "output_price"));
    let prices = prices.map(|(input, output)| Prices { input, output });
    if section.node("input_price").is_some() != section.node("output_price").is_some() {
        let problem = section.problem(DiagnosticKind::FieldRequired, "a price needs the other: question and answer");
        section.report(problem.at(section.head()).help("a price of 0 is free"));
    }
    let habits = habits(section);
    let is_right = section.context.diagnostics.len() == before;
    is_right.then(|| ModelConfig { name: name.to_owned(), place: is_said.then_some(place), prices, habits })
}

fn habits(section: &Section<'_>) -> Habits {
    let options = section.node("options").and_then(|node| match node.to_json() {
        serde_json::Value::Object(options) => Some(options),
        _ => section.wrong_type("options", node, "a mapping"),
    });
    Habits {
        window: section.count("window", 1).map(|tokens| tokens as u64),
        max_tokens: section.count("max_tokens", 1).map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        options,
    }
}

fn price(section: &Section<'_>, name: &str) -> Option<f64> {
    let price = section.number(name)?;
    if price < 0.0 {
        let problem =
            section.problem(DiagnosticKind::InvalidValue, format!("`{name}` must be at least 0, not {price}"));
        section.report(problem.at(section.place(name)));
    }
    Some(price)
}

fn base_url(section: &Section<'_>, written: &str) -> Option<Uri> {
    let wrong = |message: &str, help: &str| {
        let problem = section.problem(DiagnosticKind::InvalidUrl, message).at(section.place("base_url"));
        section.report(problem.help(help));
        None
    };
    let url = Url::parse(written).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url.filter(|url| url.host_str().is_some_and(|host| !host.is_empty())) else {
        section.context.diagnostics.conceal(section.place("base_url"));
        return wrong("this is no http or https address", "write it as in `http://127.0.0.1:11434`");
    };
    if !url.username().is_empty() || url.password().is_some() {
        section.context.diagnostics.conceal(section.place("base_url"));
        return wrong("user information does not belong into an address", "set `api_key`");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("this is a base address, without query and fragment", "leave them out");
    }
    match Uri::try_from(url.as_str()) {
        Ok(uri) => Some(uri),
        Err(_) => wrong("this address cannot be called", "write it as in `http://127.0.0.1:11434`"),
    }
}

fn written_key(section: &Section<'_>, options: &ReadOptions<'_>) -> Option<HeaderValue> {
    let wrong = |field: &str, kind, message: String| {
        section.report(section.problem(kind, message).at(section.place(field)));
        None
    };
    let (field, key) = match (section.text("api_key"), section.text("api_key_file")) {
        (None, None) => return None,
        (Some(_), Some(_)) => {
            section.context.diagnostics.conceal(section.place("api_key"));
            return wrong("api_key_file", DiagnosticKind::InvalidValue, "a key stands here and in a file".to_owned());
        }
        (Some(written), None) => ("api_key", variable(section, written, options)?),
        (None, Some(file)) => match std::fs::read_to_string(options.working_dir.join(file)) {
            Ok(key) => ("api_key_file", key),
            Err(error) => {
                let message = format!("the file `{file}` cannot be read: {error}");
                return wrong("api_key_file", DiagnosticKind::MissingFile, message);
            }
        },
    };
    match api_key(&key).filter(|key| !key.is_empty()) {
        Some(key) => Some(key),
        None => wrong(field, DiagnosticKind::InvalidValue, "this key is empty, or cannot stand in a header".to_owned()),
    }
}
