use gatehook_engine::config::{ConfigError, DiagnosticKind, Document, Format, ReadOptions};

use super::*;
use crate::settings;

/// The models of a file, with these variables set.
fn read(text: &str, env: &[(&str, &str)]) -> Result<Models, ConfigError> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let document = Document::parse("g.yaml", text, Format::Yaml)?;
    let (_, settings) = settings::read(&document, &ReadOptions { env: &env, ..ReadOptions::default() })?;
    Ok(Models::new(settings.models().to_vec(), &env))
}

const KEYS: [(&str, &str); 2] = [("OPENAI_API_KEY", "sk-o"), ("ANTHROPIC_API_KEY", " sk-a\n")];

fn key(target: &Target<'_>) -> Option<String> {
    target.api_key.as_ref().map(|key| key.to_str().unwrap().to_owned())
}

#[test]
fn the_three_providers_need_no_configuration_but_their_key() {
    let models = read("{}", &KEYS).unwrap();
    for (model, url, name, wanted) in [
        ("ollama/llama3:8b", "http://127.0.0.1:11434/api/chat", "llama3:8b", None),
        ("ollama/library/qwen3", "http://127.0.0.1:11434/api/chat", "library/qwen3", None),
        ("openai/gpt-5-mini", "https://api.openai.com/v1/chat/completions", "gpt-5-mini", Some("sk-o")),
        ("anthropic/claude-haiku-4-5", "https://api.anthropic.com/v1/messages", "claude-haiku-4-5", Some("sk-a")),
    ] {
        let target = models.target(model).unwrap();
        assert_eq!((target.url.to_string().as_str(), target.name), (url, name), "{model}");
        assert_eq!(key(&target).as_deref(), wanted, "{model}");
    }
}

#[test]
fn a_model_that_nobody_can_ask_is_said_to_be_one() {
    let models = read("models: { 'mine/*': { kind: openai, api_key: k } }", &[]).unwrap();
    for (model, part) in [
        ("llama3", "names no provider"),
        ("/llama3", "names no provider"),
        ("ollama/", "names no provider"),
        ("olama/llama3", "did you mean `ollama`?"),
        ("openai/gpt-5", "set OPENAI_API_KEY"),
        ("mine/gpt", "needs a `base_url`"),
        ("elsewhere/gpt", "in `models`"),
    ] {
        let error = models.target(model).unwrap_err();
        assert!(error.contains(part), "{model}: {error}");
        assert_eq!(models.check(model), Err(error), "{model}");
    }
}

#[test]
fn the_most_specific_entry_says_where_a_model_is_and_what_it_costs() {
    let text = "
models:
  '*': { input_price: 9, output_price: 9 }
  openai/*: { base_url: 'http://10.0.0.1/v1', api_key: shared }
  openai/gpt-5: { input_price: 1.25, output_price: 10 }
  openai/local: { base_url: 'http://127.0.0.1:8080' }
";
    assert!(read(text, &KEYS).is_err(), "`*` names no provider");
    let models = read(&text.replace("'*':", "'*/*':"), &KEYS).unwrap();
    for (model, host, wanted, price) in [
        ("openai/gpt-5", "10.0.0.1", Some("shared"), 1.25),
        ("openai/gpt-4", "10.0.0.1", Some("shared"), 9.0),
        ("openai/local", "127.0.0.1", None, 9.0),
        ("anthropic/claude", "api.anthropic.com", Some("sk-a"), 9.0),
    ] {
        let target = models.target(model).unwrap();
        assert_eq!((target.url.host(), key(&target).as_deref()), (Some(host), wanted), "{model}");
        assert_eq!(target.prices.unwrap().input, price, "{model}");
    }
}

#[test]
fn prices_are_per_million_tokens() {
    let prices = Prices { input: 0.5, output: 2.0 };
    assert_eq!(prices.cost(TokenUsage { input_tokens: 1_000_000, output_tokens: 500_000 }), 1.5);
    assert_eq!(Prices { input: 0.0, output: 0.0 }.cost(TokenUsage { input_tokens: 7, output_tokens: 7 }), 0.0);
}

#[test]
fn what_is_wrong_with_a_model_is_told_without_its_key() {
    for (fields, kind) in [
        ("kind: gemini", DiagnosticKind::InvalidValue),
        ("base_url: 'ftp://h'", DiagnosticKind::InvalidUrl),
        ("base_url: 'http://me:sk-secret@h'", DiagnosticKind::InvalidUrl),
        ("base_url: 'http://h?key=x'", DiagnosticKind::InvalidUrl),
        ("api_key: sk-secret, api_key_file: f", DiagnosticKind::InvalidValue),
        ("api_key: \"sk-secret\\n2\"", DiagnosticKind::InvalidValue),
        ("api_key: '${env.NOWHERE}'", DiagnosticKind::MissingVariable),
        ("api_key_file: /nowhere/sk.key", DiagnosticKind::MissingFile),
        ("input_price: 1", DiagnosticKind::FieldRequired),
        ("input_price: -1, output_price: 1", DiagnosticKind::InvalidValue),
        ("input_price: cheap, output_price: 1", DiagnosticKind::WrongType),
        ("window: 0", DiagnosticKind::InvalidValue),
        ("max_tokens: many", DiagnosticKind::WrongType),
        ("options: [1]", DiagnosticKind::WrongType),
        ("prize: 1", DiagnosticKind::UnknownField),
    ] {
        let error = read(&format!("models: {{ 'openai/x': {{ {fields} }} }}"), &[]).map(drop).unwrap_err();
        assert_eq!(error.kind(), Some(kind), "{fields}: {error}");
        assert!(!error.to_string().contains("sk-secret"), "{error}");
    }
}

#[test]
fn keys_are_never_shown() {
    let models = read("models: { 'openai/*': { api_key: sk-secret } }", &[]).unwrap();
    let shown = format!("{models:?} {:?}", models.target("openai/x"));
    assert!(!shown.contains("sk-secret"), "{shown}");
}

#[test]
fn an_agent_is_told_how_to_ask() {
    let text = "
models:
  'ollama/*': { window: 8192, options: { temperature: 0 } }
  ollama/llama3: { max_tokens: 500 }
";
    let models = read(text, &KEYS).unwrap();
    let target = models.target("ollama/llama3").unwrap();
    assert_eq!((target.habits.window, target.habits.max_tokens), (Some(8192), Some(500)));
    assert_eq!(target.habits.options.as_ref().unwrap()["temperature"], 0);
    assert!(target.headers().is_empty());
    let headers = models.target("anthropic/claude").unwrap().headers();
    assert!(headers["x-api-key"].is_sensitive() && headers.contains_key("anthropic-version"));
}
