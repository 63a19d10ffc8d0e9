//! What holds of every contract, whatever its hooks write and its callers bring.

use gatehook_events::dialect::{HookName, Occasion, Printed, Said};
use gatehook_events::sample::sample;
use gatehook_events::{Event, Input};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn payload(dialect: &dyn Dialect, event: Event, input: &Input) -> Value {
    let hook = Some(HookName { name: "guard", version: "" }).filter(|_| dialect.names_hook());
    let line = dialect.payload(&Occasion { event, input, hook }).unwrap();
    assert!(!line.contains(&b'\n'), "a payload is one line");
    serde_json::from_slice(&line).unwrap()
}

fn events(dialect: &dyn Dialect) -> impl Iterator<Item = Event> {
    Event::all().filter(|event| dialect.event_name(*event).is_some())
}

/// Whether all of `part` stands in `whole`.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| holds(whole, part)))
        }
        (whole, part) => whole == part,
    }
}

#[test]
fn a_payload_says_the_same_after_it_was_read() {
    for dialect in all() {
        for event in events(&*dialect) {
            let first = payload(&*dialect, event, &Input::read(sample(event)).unwrap());
            let (read, input) = dialect.read_payload(None, first.clone()).unwrap();
            assert_eq!(read, event, "{dialect:?}");
            assert_eq!(payload(&*dialect, event, &input), first, "{dialect:?} {}", event.name());
        }
    }
}

#[test]
fn a_payload_that_cannot_be_read_says_why() {
    for dialect in all() {
        for (text, message) in [
            ("[]", "it is no JSON object"),
            ("{}", "it does not name its event"),
            (r#"{"event": "no-such", "hook": "NoSuch"}"#, "there is no event `"),
        ] {
            let error = dialect.read_payload(None, serde_json::from_str(text).unwrap()).unwrap_err();
            assert!(error.to_string().starts_with(message), "{dialect:?} {text}: {error}");
        }
    }
}

/// JSON of any shape, with the keys that contracts know.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![Just("allow"), Just("deny"), Just("ask"), Just(""), Just("PreToolUse"), Just("custom")];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "allow",
        "message",
        "metadata",
        "continue",
        "systemMessage",
        "data",
        "error",
        "permissionDecision",
        "reason",
        "hookSpecificOutput",
        "additionalContext",
        "updatedInput",
        "updatedOutput",
        "event",
        "context",
        "hook",
        "tool",
        "tool_name",
        "tool_input",
        "arguments",
        "args",
        "session",
        "id",
        "timestamp",
        "session_id",
        "model",
        "messages",
        "prompt",
        "result",
        "summary",
        "type",
        "config",
        "details",
        "files",
        "x",
    ]);
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// An event of either contract.
fn any_event() -> impl Strategy<Value = Event> {
    prop::sample::select(Event::all().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn any_reply_is_an_answer_or_a_failure(
        stdout: Vec<u8>, stderr in ".{0,8}", exit_code in -1..4, event in any_event(),
    ) {
        for dialect in all() {
            let _ = dialect.read_reply(event, &Printed { stdout: &stdout, stderr: &stderr, exit_code });
        }
    }

    #[test]
    fn any_object_is_an_answer_or_a_failure(reply in any_json(), exit_code in -1..4, event in any_event()) {
        let stdout = reply.to_string();
        for dialect in all() {
            let printed = Printed { stdout: stdout.as_bytes(), stderr: "", exit_code };
            let said = dialect.read_reply(event, &printed);
            // Only a well-formed yes lets what an OLLM hook guards pass.
            if dialect.profile() == gatehook_events::Profile::Ollm && let Said::Output(output) = &said {
                let yes = reply.get("allow").or(reply.get("continue")) == Some(&json!(true));
                prop_assert!(output.is_blocked() || (yes && exit_code == 0), "{reply}: {said:?}");
            }
        }
    }

    #[test]
    fn any_payload_is_read_or_refused(given in any_json(), event in any_event(), named: bool) {
        for dialect in all() {
            let event = Some(event).filter(|event| named && dialect.event_name(*event).is_some());
            if let Ok((event, input)) = dialect.read_payload(event, given.clone()) {
                let again = payload(&*dialect, event, &input);
                prop_assert!(again.is_object());
            }
        }
    }

    #[test]
    fn what_was_written_says_the_same_when_it_was_read(given in any_json(), event in any_event()) {
        for dialect in all() {
            let Ok((event, mut input)) = dialect.read_payload(Some(event), given.clone()) else { continue };
            for known in [&mut input.session_id, &mut input.cwd, &mut input.timestamp] {
                known.get_or_insert_with(|| "2026-01-16T10:05:30Z".into());
            }
            let written = payload(&*dialect, event, &input);
            let (_, input) = dialect.read_payload(Some(event), written.clone()).unwrap();
            prop_assert_eq!(payload(&*dialect, event, &input), written, "{:?} {:?}", dialect, event);
        }
    }

    #[test]
    fn what_a_caller_adds_is_told_on(extra in prop::collection::btree_map("x_[a-z]{1,4}", any_json(), 0..4)) {
        let extra: Map<String, Value> = extra.into_iter().collect();
        let flat = json!({"hook": "Notification", "data": extra});
        let (event, input) = OllamaCli.read_payload(None, flat.clone()).unwrap();
        prop_assert!(holds(&payload(&OllamaCli, event, &input), &flat));
        let context = json!({"event": "custom", "context": extra});
        let (event, input) = Ollm.read_payload(None, context.clone()).unwrap();
        prop_assert!(holds(&payload(&Ollm, event, &input), &context));
    }
}
