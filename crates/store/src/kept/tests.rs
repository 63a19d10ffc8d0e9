use std::sync::Arc;

use gatehook_events::{Message, Segment, SegmentKind};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A key as a vendor makes them, put together here so that no scan finds it in this file.
fn secret() -> String {
    format!("{}_{}", "ghp", "x7Qm2Zp9Lk4Vt8Rw3Ns6Yb1Hd5Jf0GcAe2Uo")
}

fn read(fields: Value) -> Input {
    Input::read(fields.as_object().unwrap().clone()).unwrap()
}

fn value(kept: &Kept) -> Value {
    serde_json::from_str(&kept.json).unwrap()
}

#[test]
fn an_input_without_secrets_is_kept_as_it_is() {
    let fields =
        json!({"session_id": "s", "tool_name": "shell", "tool_input": {"cmd": "ls", "n": 3, "deep": [{"a": null}]}});
    let kept = input(&read(fields.clone()));
    assert_eq!((value(&kept), kept.secrets, kept.cut), (fields, 0, false));
}

#[test]
fn a_secret_is_taken_out_wherever_it_stands() {
    let secret = secret();
    let fields = json!({
        "tool_input": {"cmd": format!("curl -H 'authorization: {secret}'"), "list": [secret], (secret.as_str()): 1},
        "messages": [{"role": "user", "content": format!("my key is {secret}")}],
        "tool_response": {"password": "hunter2hunter2hunter2X9"},
    });
    let kept = input(&read(fields));
    assert!(!kept.json.contains(&secret) && !kept.json.contains("hunter2"), "{}", kept.json);
    assert_eq!((kept.secrets, kept.cut), (5, false), "{}", kept.json);
}

#[test]
fn an_approval_is_not_kept() {
    let kept = input(&read(json!({"approval": "apr-1", "data": {"approval": "given"}})));
    assert_eq!((value(&kept), kept.secrets), (json!({"approval": MARKER, "data": {"approval": "given"}}), 1));
}

#[test]
fn no_half_of_a_secret_is_kept_where_a_text_is_cut() {
    let secret = secret();
    let start = 256 - secret.len() / 2;
    let text = format!("{}{secret}{}", " word".repeat(start).get(..start).unwrap(), " more".repeat(40_000));
    let messages: Vec<Value> = (0..16).map(|_| json!({"role": "user", "content": text})).collect();
    let kept = input(&read(json!({"messages": messages})));
    assert!(kept.cut && kept.json.len() <= MAX_INPUT);
    assert!(!kept.json.contains(secret.get(..12).unwrap()), "{}", kept.json);
    assert!(super::text(&text).contains(MARKER));
}

#[test]
fn a_segment_is_kept_up_to_where_it_is_settled() {
    let secret = secret();
    let (half, _) = secret.split_at(20);
    let of = |text: &str, final_| {
        let segment = Segment { index: 0, final_, kind: SegmentKind::Text };
        let output_text = Some(Arc::from(text));
        input(&Input { output_text, segment: Some(segment), ..Input::default() })
    };
    let kept = of(&format!("the key is {half}"), false);
    assert!(kept.cut && !kept.json.contains(half), "{}", kept.json);
    let whole = of("the key is gone.", true);
    assert!(!whole.cut && whole.json.contains("gone."), "{}", whole.json);
}

#[test]
fn of_a_long_conversation_the_end_is_kept() {
    let messages: Vec<Message> =
        (0..2000).map(|at| Message::new("user", &format!("{at}: {}", "x ".repeat(100)))).collect();
    let kept = input(&Input { messages: Some(messages.into()), ..Input::default() });
    assert!(kept.cut && kept.json.len() <= MAX_INPUT && kept.json.contains("1999: "), "{}", kept.json);
    assert!(Input::read(value(&kept).as_object().unwrap().clone()).is_ok(), "what is kept is an input still");
}

#[test]
fn many_small_fields_are_bounded_too() {
    let fields: Map<String, Value> = (0..50_000).map(|at| (format!("field_{at}"), json!(at))).collect();
    let kept = input(&read(json!({"data": fields, "tool_input": fields})));
    assert!(kept.cut && kept.json.len() <= MAX_INPUT, "{}", kept.json.len());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        Just(json!(secret())),
        (0_usize..3000).prop_map(|times| json!("wörd ".repeat(times))),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,10}", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_is_bounded_and_holds_no_secret(data in any_json(), extra in any_json()) {
        let kept = input(&read(json!({"data": data, "of_its_own": extra})));
        prop_assert!(kept.json.len() <= MAX_INPUT);
        prop_assert!(!kept.json.contains(&secret()));
        prop_assert!(value(&kept).is_object());
    }
}
