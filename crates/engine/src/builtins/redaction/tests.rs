//! Several builtins that redact, one after the other, on texts where what one finds is glued to what another finds.

use std::ops::Range;
use std::sync::LazyLock;

use futures_util::FutureExt;
use gatehook_events::{Event, Input, Message, Rewritten, Verdict};
use gatehook_scan::pii::{self, Kinds};
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig};

/// Secrets of every sort of rule: by prefix, by name, by what stands around them.
const SECRETS: [&[&str]; 14] = [
    &["AKIA", "Q3EGRF5XYNB7TW2P"],
    &["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"],
    &["sk-proj-", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5T3BlbkFJaB3dE5gH7jK9mN1pQ3sT"],
    &["api_key: \"", "Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A", "\""],
    &["datadog_api_key=", "3f9a1c5e7b2d4f60891a2b3c4d5e6f70"],
    &["password = ", "hunter2!hunter2"],
    &["db_password: '", "s3cret!word", "'"],
    &["Bearer ", "Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A"],
    &["--client-secret ", "Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A"],
    &["https://bob:", "hunter2x9!pw", "@db.example.com/x"],
    &["-----BEGIN PRIVATE ", "KEY-----\nMIIEow7AbCdEfGhIjKlMnOp\n-----END PRIVATE KEY-----"],
    &["123456789", ":AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"],
    &["0123456789abcdef0123456789abcdef", "-us12"],
    &["token=", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"],
];

const VALUES: [&str; 9] = [
    "jane.doe@example.com",
    "j@x.io",
    "4111 1111 1111 1111",
    "4111111111111111",
    "DE89 3704 0044 0532 0130 00",
    "123-45-6789",
    "+49 151 12345678",
    "8.8.8.8",
    "2001:db8::8a2e:370:7334",
];

const SEPARATORS: [&str; 18] =
    ["", " ", "\n", "_", "-", ".", ",", ":", ";", "/", "=", "\"", "'", "@", "é", "x", "7", "; "];

const WINDOW: usize = 6;

fn executor(event: Event, names: &[&str]) -> Executor {
    let hooks = names.iter().map(|name| HookDefinition::builtin(name, &[])).collect();
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks }] };
    Executor::new(config, HandlerEnv::current().unwrap()).unwrap()
}

const ORDERS: [[&str; 2]; 2] = [["redact_secrets", "redact_pii"], ["redact_pii", "redact_secrets"]];

/// Where texts stand, in each order of the hooks.
static EXECUTORS: LazyLock<Vec<(String, Event, Executor)>> = LazyLock::new(|| {
    let events = [Event::PostInference, Event::PreInference, Event::ToolResponseTransform];
    let each = ORDERS.into_iter().flat_map(|names| events.map(|event| (names, event)));
    each.map(|(names, event)| (format!("{names:?} {}", event.name()), event, executor(event, &names))).collect()
});

/// What is left of a text: as an answer, in a conversation, and in what a tool says.
fn left_of(text: &str) -> Vec<(&'static str, String)> {
    let each = EXECUTORS.iter().map(|(how, event, executor)| {
        let input = match event {
            Event::PostInference => Input { output_text: Some(text.into()), ..Input::default() },
            Event::PreInference => Input { messages: Some([Message::new("user", text)].into()), ..Input::default() },
            _ => Input { tool_response: Some(json!([text]).into()), ..Input::default() },
        };
        let verdict = dispatched(executor, *event, &input);
        assert!(verdict.allowed, "{text:?}");
        let Rewritten { output, messages, tool_response, .. } = verdict.rewritten;
        let now = output.and_then(|output| output.text).or(messages.and_then(|messages| messages[0].content.clone()));
        let now = now.map(|text| text.to_string()).or(tool_response.map(|value| value[0].as_str().unwrap().to_owned()));
        (&**how, now.unwrap_or_else(|| text.to_owned()))
    });
    each.collect()
}

/// Builtins wait for nothing.
fn dispatched(executor: &Executor, event: Event, input: &Input) -> Verdict {
    let cancel = CancellationToken::new();
    executor.dispatch(event, input, &cancel).now_or_never().expect("short texts are looked at on the spot")
}

/// Where secrets and personal data stand.
fn found(text: &str) -> Vec<Range<usize>> {
    let secrets = gatehook_scan::find(text).into_iter().map(|found| found.range);
    secrets.chain(pii::find(text, Kinds::ALL).into_iter().map(|found| found.range)).collect()
}

/// No part of what was found is left, as far as it does not stand elsewhere too.
fn is_clean(text: &str, how: &str, left: &str) {
    let found = found(text);
    let hides = |at: usize| found.iter().any(|range| range.contains(&at));
    let rest: String = text.char_indices().map(|(at, char)| if hides(at) { '\u{0}' } else { char }).collect();
    for range in &found {
        let value = &text[range.clone()];
        for window in value.as_bytes().windows(WINDOW.min(value.len())) {
            let Ok(window) = std::str::from_utf8(window) else { continue };
            if !rest.contains(window) && !"[REDACTED]".contains(window) {
                assert!(!left.contains(window), "{how}: {window:?} of {value:?} is left of\n{text:?} in\n{left:?}");
            }
        }
    }
    assert_eq!(gatehook_scan::find(left), [], "{how}: of {text:?} is left {left:?}");
    assert_eq!(pii::find(left, Kinds::ALL), [], "{how}: of {text:?} is left {left:?}");
}

fn glued() -> impl Strategy<Value = String> {
    let secret = prop::sample::select(SECRETS.as_slice()).prop_map(|parts| parts.concat());
    let value = prop::sample::select(VALUES.as_slice()).prop_map(str::to_owned);
    let piece = (prop_oneof![secret, value], prop::sample::select(SEPARATORS.as_slice()));
    prop::collection::vec(piece, 1..5)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(piece, separator)| [piece, separator.to_owned()]).collect())
}

#[test]
fn a_secret_is_found_though_its_name_was_taken_for_a_part_of_something_else() {
    for secret in SECRETS {
        for value in VALUES {
            for separator in ["", "_", "-", ":", "="] {
                for text in
                    [format!("{value}{separator}{}", secret.concat()), format!("{}{separator}{value}", secret.concat())]
                {
                    for (how, left) in left_of(&text) {
                        is_clean(&text, how, &left);
                    }
                }
            }
        }
    }
    let text = "j@x.ioapi_key: \"Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A\"";
    for (how, left) in left_of(text) {
        let want =
            if how.contains("pre_inference") { "<EMAIL_1>_key: \"[REDACTED]\"" } else { "<EMAIL>_key: \"[REDACTED]\"" };
        assert_eq!(left, want, "{how}");
    }
}

#[test]
fn a_key_that_is_redacted_still_names_its_value() {
    for names in ORDERS {
        let executor = executor(Event::ToolResponseTransform, &names);
        let value = json!({"j@x.ioapi_key": "Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A", "note": "4711"});
        let input = Input { tool_response: Some(value.into()), ..Input::default() };
        let verdict = dispatched(&executor, Event::ToolResponseTransform, &input);
        let want = json!({"<EMAIL>_key": "[REDACTED]", "note": "4711"});
        assert_eq!(*verdict.rewritten.tool_response.unwrap(), want, "{names:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_left_of_what_is_glued_together(text in glued()) {
        for (how, left) in left_of(&text) {
            is_clean(&text, how, &left);
        }
    }
}
