//! The five variables of the Ollama inference webhooks (<https://github.com/ollama/ollama/pull/15630>) as hooks.

use std::collections::BTreeMap;
use std::time::Duration;

use gatehook_events::{Event, Profile};

use super::diagnostic::{ConfigError, Diagnostic, DiagnosticKind as Kind, Diagnostics};
use super::reference::{check_name, check_value};
use super::webhook::check_url;
use super::{duration, suggest, words};
use crate::definition::{
    Contract, HandlerDefinition, HookDefinition, HookGroup, HooksConfig, OnError, WebhookDefinition,
};

/// A variable of the environment, for `--help` and documentation.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What holds where it is not set, in words; empty where nothing does.
    pub default: &'static str,
    /// What it says, in a sentence.
    pub doc: &'static str,
}

/// The variables and what each says.
pub const OLLAMA_VARIABLES: &[Variable] = &[
    Variable { name: PRE_URL, default: "", doc: "A webhook that judges each request before the model sees it." },
    Variable { name: POST_URL, default: "", doc: "A webhook that judges each answer before the client sees it." },
    Variable { name: TIMEOUT, default: "5s", doc: "How long a webhook may take, as in `500ms` or `1m30s`." },
    Variable {
        name: ON_ERROR,
        default: "deny",
        doc: "What an unreachable or unreadable webhook means: `deny` or `allow`.",
    },
    Variable { name: HEADERS, default: "", doc: "Sent to the webhooks: `Name: Value, Name: Value`." },
];

const PRE_URL: &str = "OLLAMA_HOOK_PRE_INFERENCE_URL";
const POST_URL: &str = "OLLAMA_HOOK_POST_INFERENCE_URL";
const TIMEOUT: &str = "OLLAMA_HOOK_TIMEOUT";
const ON_ERROR: &str = "OLLAMA_HOOK_ON_ERROR";
const HEADERS: &str = "OLLAMA_HOOK_HEADERS";

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
const ON_ERROR_WORDS: [(&str, OnError); 2] = [("deny", OnError::Block), ("allow", OnError::Warn)];

/// The hooks that the variables name; `None` where neither URL is set. An empty variable is not set.
///
/// All bad values are reported at once, those of variables without effect included. No report shows user information
/// of an address or a header's value.
pub fn ollama_env(env: &BTreeMap<String, String>) -> Result<Option<HooksConfig>, ConfigError> {
    let variables = Variables { env, found: Diagnostics::new() };
    let (timeout, on_error, headers) = (variables.timeout(), variables.on_error(), variables.headers());
    let mut config = HooksConfig::default();
    for (name, event) in [(PRE_URL, Event::PreInference), (POST_URL, Event::PostInference)] {
        let Some(url) = variables.url(name) else { continue };
        let headers = headers.clone();
        let webhook =
            WebhookDefinition { method: "POST".to_owned(), headers, ..WebhookDefinition::new(url, Contract::Ollama) };
        let hook = HookDefinition::new(Profile::Native, HandlerDefinition::Webhook(webhook));
        let hooks = vec![HookDefinition { timeout: Some(timeout), on_error: Some(on_error), ..hook }];
        config.groups.push(HookGroup { event, matcher: String::new(), hooks });
    }
    variables.found.finish_text("environment", "", (!config.is_empty()).then_some(config))
}

/// Reads one variable after the other. What is wrong is reported, and a default stands in for it.
struct Variables<'a> {
    env: &'a BTreeMap<String, String>,
    found: Diagnostics,
}

impl<'a> Variables<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn report(&self, kind: Kind, name: &str, message: &str, help: &str) {
        self.found.report(Diagnostic::new(kind, name, format!("{name}: {message}")).help(help));
    }

    fn timeout(&self) -> Duration {
        let Some(text) = self.get(TIMEOUT) else { return DEFAULT_TIMEOUT };
        let timeout = duration::parse(text).and_then(duration::of_seconds).filter(|timeout| !timeout.is_zero());
        timeout.unwrap_or_else(|| {
            let message = format!("`{text}` is not a length of time above 0");
            let help = "write a number with its unit, as in `5s`, `500ms`, `1m30s`";
            self.report(Kind::InvalidValue, TIMEOUT, &message, help);
            DEFAULT_TIMEOUT
        })
    }

    fn on_error(&self) -> OnError {
        let Some(word) = self.get(ON_ERROR) else { return OnError::Block };
        let known = ON_ERROR_WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, on_error)| *on_error).unwrap_or_else(|| {
            let help = suggest::one_of(word, &words(&ON_ERROR_WORDS));
            self.report(Kind::InvalidOnError, ON_ERROR, &format!("there is no value `{word}`"), &help);
            OnError::Block
        })
    }

    fn headers(&self) -> Vec<(String, String)> {
        let headers = self.get(HEADERS).map_or(Ok(Vec::new()), headers);
        headers.unwrap_or_else(|problems| {
            for message in problems {
                self.report(Kind::InvalidHeader, HEADERS, &message, "write `Name: Value, Name: Value`");
            }
            Vec::new()
        })
    }

    fn url(&self, name: &str) -> Option<String> {
        let url = self.get(name)?;
        if let Err(cause) = check_url(url) {
            let message = format!("`{}`: {cause}", without_secrets(url));
            self.report(Kind::InvalidUrl, name, &message, "write an address, as in `http://127.0.0.1:9101/pre`");
        }
        Some(url.to_owned())
    }
}

/// The headers, or what is wrong with them: entries by their number, for what stands there may be part of a secret.
fn headers(text: &str) -> Result<Vec<(String, String)>, Vec<String>> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut problems = Vec::new();
    for (number, entry) in text.split(',').enumerate() {
        let number = number + 1;
        let Some((name, value)) = entry.split_once(':') else {
            problems.push(format!("entry {number} has no `:`"));
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if check_name(name).is_err() {
            problems.push(format!("entry {number} does not begin with the name of a header that may be set"));
        } else if check_value(name, value).is_err() {
            problems.push(format!("the value of `{name}` has characters that a header cannot carry"));
        } else if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            problems.push(format!("`{name}` stands twice"));
        } else {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    if problems.is_empty() { Ok(headers) } else { Err(problems) }
}

/// An address without what may be a secret: user information, query, fragment.
fn without_secrets(url: &str) -> String {
    let (stars, shown) = match url.rsplit_once('@') {
        Some((_, shown)) => ("***@", shown),
        None => ("", url),
    };
    let shown = shown.split(['?', '#']).next().unwrap_or_default();
    format!("{stars}{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<HooksConfig>, String> {
        let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ollama_env(&env).map_err(|error| error.to_string())
    }

    #[test]
    fn without_an_address_there_are_no_hooks() {
        for variables in [&[][..], &[(PRE_URL, " ")], &[(TIMEOUT, "3s"), (ON_ERROR, "allow"), (HEADERS, "A: b")]] {
            assert_eq!(read(variables), Ok(None), "{variables:?}");
        }
    }

    #[test]
    fn an_address_alone_denies_on_failure_after_five_seconds() {
        let config = read(&[(POST_URL, "http://127.0.0.1:9101/post")]).unwrap().unwrap();
        let [group] = config.groups.as_slice() else { panic!("{config:?}") };
        assert_eq!((group.event, group.matcher.as_str()), (Event::PostInference, ""));
        let hook = &group.hooks[0];
        assert_eq!((hook.timeout(), hook.on_error), (Duration::from_secs(5), Some(OnError::Block)));
        let HandlerDefinition::Webhook(webhook) = &hook.handler else { panic!("{hook:?}") };
        assert_eq!((webhook.method.as_str(), webhook.contract), ("POST", Contract::Ollama));
    }

    #[test]
    fn all_five_are_read() {
        let config = read(&[
            (PRE_URL, "https://a.example/pre"),
            (POST_URL, "https://a.example/post"),
            (TIMEOUT, "1m30s"),
            (ON_ERROR, "allow"),
            (HEADERS, "Authorization: Bearer a:b, X-Team:red"),
        ]);
        let config = config.unwrap().unwrap();
        assert_eq!(config.groups.len(), 2);
        for group in &config.groups {
            let hook = &group.hooks[0];
            assert_eq!((hook.timeout(), hook.on_error), (Duration::from_secs(90), Some(OnError::Warn)));
            let HandlerDefinition::Webhook(webhook) = &hook.handler else { panic!("{hook:?}") };
            let headers: Vec<_> = webhook.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(headers, [("Authorization", "Bearer a:b"), ("X-Team", "red")]);
        }
    }

    #[test]
    fn a_bad_value_names_its_variable_and_what_is_allowed() {
        let bad = read(&[
            (PRE_URL, "ftp://me:hunter2@h.example/x?key=s3cret"),
            (POST_URL, "me:hunter2@h.example"),
            (TIMEOUT, "5"),
            (ON_ERROR, "dney"),
            (HEADERS, "hunter2, Host: x, A b: c, X: hunt\u{e9}r2"),
        ]);
        insta::assert_snapshot!(bad.unwrap_err(), @r"
        environment: OLLAMA_HOOK_TIMEOUT: `5` is not a length of time above 0 [invalid_value]
          help: write a number with its unit, as in `5s`, `500ms`, `1m30s`
        environment: OLLAMA_HOOK_ON_ERROR: there is no value `dney` [invalid_on_error]
          help: did you mean `deny`?
        environment: OLLAMA_HOOK_HEADERS: entry 1 has no `:` [invalid_header]
          help: write `Name: Value, Name: Value`
        environment: OLLAMA_HOOK_HEADERS: entry 2 does not begin with the name of a header that may be set [invalid_header]
          help: write `Name: Value, Name: Value`
        environment: OLLAMA_HOOK_HEADERS: entry 3 does not begin with the name of a header that may be set [invalid_header]
          help: write `Name: Value, Name: Value`
        environment: OLLAMA_HOOK_HEADERS: the value of `X` has characters that a header cannot carry [invalid_header]
          help: write `Name: Value, Name: Value`
        environment: OLLAMA_HOOK_PRE_INFERENCE_URL: `***@h.example/x`: a webhook is reached by `http://` or `https://` [invalid_url]
          help: write an address, as in `http://127.0.0.1:9101/pre`
        environment: OLLAMA_HOOK_POST_INFERENCE_URL: `***@h.example`: a webhook is reached by `http://` or `https://` [invalid_url]
          help: write an address, as in `http://127.0.0.1:9101/pre`
        ");
    }

    #[test]
    fn an_address_needs_a_scheme_and_a_host() {
        for url in
            ["localhost:9101", "http:", "http://", "http:///pre", "http:h", "file:///x", "//h/x", "http://h:99999"]
        {
            let error = read(&[(PRE_URL, url)]).unwrap_err();
            assert!(error.contains(PRE_URL) && error.contains("[invalid_url]"), "{url}: {error}");
        }
    }

    #[test]
    fn a_bad_value_counts_without_an_address_too() {
        for (name, value) in [(TIMEOUT, "-1s"), (TIMEOUT, "0s"), (ON_ERROR, "Deny"), (HEADERS, ",")] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.contains(name), "{name}={value}: {error}");
        }
    }
}
