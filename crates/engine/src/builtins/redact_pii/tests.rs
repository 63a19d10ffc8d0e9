use gatehook_scan::Restore;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn redact_pii() -> RedactPii {
    RedactPii { kinds: Kinds::ALL, clean: Recall::by_content() }
}

fn said(event: Event, input: Value) -> Option<Output> {
    let input: Input = serde_json::from_value(input).unwrap();
    redact_pii().judge(event, &input, &Others::default()).unwrap()
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

/// What becomes of a conversation, and its pairs.
fn redacted(messages: Value) -> (Value, Vec<(String, String)>) {
    let Some(output) = said(Event::PreInference, json!({"messages": messages})) else { return (messages, Vec::new()) };
    let pairs = output.placeholders.iter().map(|(placeholder, value)| (placeholder.to_string(), value.to_string()));
    (serde_json::to_value(output.messages.unwrap()).unwrap(), pairs.collect())
}

#[test]
fn values_are_numbered_by_first_appearance_and_the_same_value_keeps_its_number() {
    let (messages, pairs) = redacted(json!([
        {"role": "system", "content": "you serve jane@example.com"},
        user("card 4111 1111 1111 1111, mail bob@example.com and jane@example.com"),
        {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function":
            {"name": "pay", "arguments": "{\"card\": 4111111111111111, \"to\": \"bob@example.com\", \"sum\": 12.50}"}}]},
        {"role": "tool", "content": "paid from 8.8.8.8"},
    ]));
    assert_eq!(
        messages,
        json!([
            {"role": "system", "content": "you serve <EMAIL_1>"},
            user("card <CARD_2>, mail <EMAIL_3> and <EMAIL_1>"),
            {"role": "assistant", "tool_calls": [{"type": "function", "function":
                {"name": "pay", "arguments": "{\"card\": \"<CARD_4>\", \"to\": \"<EMAIL_3>\", \"sum\": 12.50}"}}]},
            {"role": "tool", "content": "paid from <IP_5>"},
        ])
    );
    let want = [
        ("<EMAIL_1>", "jane@example.com"),
        ("<CARD_2>", "4111 1111 1111 1111"),
        ("<EMAIL_3>", "bob@example.com"),
        ("<CARD_4>", "4111111111111111"),
        ("<IP_5>", "8.8.8.8"),
    ];
    assert_eq!(pairs, want.map(|(placeholder, value)| (placeholder.to_owned(), value.to_owned())));
}

#[test]
fn a_conversation_that_goes_on_keeps_its_beginning() {
    let mut messages = vec![user("I am jane@example.com"), user("call +49 151 12345678")];
    let (first, _) = redacted(json!(messages));
    messages.extend([user("and bob@example.com"), user("jane@example.com")]);
    let (second, _) = redacted(json!(messages));
    assert_eq!(second.as_array().unwrap()[..2], first.as_array().unwrap()[..]);
    assert_eq!(second[2]["content"], "and <EMAIL_3>");
    assert_eq!(second[3]["content"], "<EMAIL_1>");
}

#[test]
fn numbers_that_stand_in_the_text_are_left_out() {
    let (messages, pairs) =
        redacted(json!([user("write <EMAIL_1> or CARD_3, to jane@example.com, 8.8.8.8, bob@example.com")]));
    assert_eq!(messages[0]["content"], "write <EMAIL_1> or CARD_3, to <EMAIL_2>, <IP_4>, <EMAIL_5>");
    assert!(pairs.iter().all(|(placeholder, _)| placeholder != "<EMAIL_1>"));
    // In arguments too, however they are escaped.
    let call = json!({"function": {"name": "f", "arguments": r#"{"a":"\u003cEMAIL_1\u003e"}"#}});
    let (messages, _) = redacted(json!([user("jane@example.com"), {"role": "assistant", "tool_calls": [call]}]));
    assert_eq!(messages[0]["content"], "<EMAIL_2>");
}

#[test]
fn placeholders_in_thinking_that_comes_back_are_our_own() {
    let (messages, _) = redacted(json!([
        user("I am jane@example.com"),
        {"role": "assistant", "thinking": "<EMAIL_1> is asking", "content": "hello"},
    ]));
    assert_eq!(messages[0]["content"], "I am <EMAIL_1>");
    assert_eq!(messages[1]["thinking"], "<EMAIL_1> is asking");
}

#[test]
fn what_holds_nothing_is_not_rewritten() {
    let messages = json!({"messages": [user("in 2024 there were 12 of <EMAIL_1>")]});
    assert_eq!(said(Event::PreInference, messages), None);
    assert_eq!(said(Event::ToolInputTransform, json!({"tool_input": {"command": "ls -la", "n": 12}})), None);
    assert_eq!(said(Event::PostInference, json!({"output_text": "hello <EMAIL_1>"})), None);
    assert_eq!(said(Event::Stop, json!({"stop_response": "jane@example.com"})), None);
}

#[test]
fn elsewhere_a_value_becomes_its_kind() {
    let output = said(
        Event::PostInference,
        json!({
            "output_text": "to <EMAIL_1> and jane@example.com", "output_thinking": "clean",
            "tool_calls": [{"function": {"name": "f", "arguments": "{\"to\":\"jane@example.com\"}"}}],
        }),
    );
    let output = output.unwrap();
    assert_eq!(output.output_text.as_deref(), Some("to <EMAIL_1> and <EMAIL>"));
    assert_eq!((output.output_thinking, output.placeholders), (None, vec![]));
    assert_eq!(&*output.tool_calls.unwrap()[0].function.arguments, r#"{"to":"<EMAIL>"}"#);

    let input =
        json!({"tool_name": "pay", "tool_input": {"card": 4111111111111111_u64, "sum": 12, "who": ["123-45-6789"]}});
    let output = said(Event::PreToolUse, input).unwrap();
    let patch = output.hook_specific_output.unwrap().updated_input.unwrap();
    assert_eq!(Value::Object(patch), json!({"card": "<CARD>", "who": ["<SSN>"]}));
    assert_eq!(output.system_message.as_deref(), Some("personal data was redacted in the arguments of pay"));

    let output = said(Event::ToolResponseTransform, json!({"tool_response": {"rows": [["8.8.8.8"], 1]}})).unwrap();
    let response = output.hook_specific_output.unwrap().updated_tool_response;
    assert_eq!(response, Some(json!({"rows": [["<IP>"], 1]})));
}

const PIECES: [&str; 16] = [
    "jane@example.com",
    "bob@example.org",
    "4111 1111 1111 1111",
    "+49 151 12345678",
    "8.8.8.8",
    "123-45-6789",
    "<EMAIL_1>",
    "<EMAIL_2",
    "_3",
    "EMAIL",
    "<",
    ">",
    " ",
    "é",
    "CARD_1",
    "1",
];

proptest! {
    #[test]
    fn restoring_gives_back_what_was_redacted(texts in prop::collection::vec(prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..8), 1..4)) {
        let texts: Vec<String> = texts.into_iter().map(|pieces| pieces.concat()).collect();
        let (messages, pairs) = redacted(texts.iter().map(|text| user(text)).collect());
        let restore = Restore::new(pairs.into_iter().map(|(placeholder, value)| (placeholder.into(), value.into())));
        for (message, text) in messages.as_array().unwrap().iter().zip(&texts) {
            let content = message["content"].as_str().unwrap();
            prop_assert_eq!(&restore.restore(content), text);
            prop_assert_eq!(pii::find(content, Kinds::ALL), []);
        }
    }
}

/// A conversation, cut at each turn, some of whose messages hold personal data or what looks like a placeholder.
fn any_conversation() -> impl Strategy<Value = (Vec<Message>, Vec<usize>)> {
    let content = prop::sample::select(vec![
        "nothing to see",
        "write to jane@example.com",
        "write to bob@example.com and jane@example.com",
        "<EMAIL_1> is what you said",
        "call +49 151 12345678",
        "",
    ]);
    let message = (content, 0..20_u8).prop_map(|(content, more)| Message::new("user", &format!("{content} {more}")));
    (prop::collection::vec(message, 1..60), prop::collection::vec(0..60_usize, 1..8))
}

proptest! {
    #[test]
    fn what_is_remembered_of_earlier_turns_changes_nothing((messages, mut turns) in any_conversation()) {
        let remembers = redact_pii();
        turns.sort_unstable();
        for turn in turns {
            let messages = messages.iter().take(turn + 1).cloned().collect();
            let input = Input { messages: Some(messages), ..Input::default() };
            let told = remembers.judge(Event::PreInference, &input, &Others::default()).unwrap();
            prop_assert_eq!(told, redact_pii().judge(Event::PreInference, &input, &Others::default()).unwrap(), "turn {}", turn);
        }
    }
}
