use std::collections::VecDeque;
use std::time::SystemTime;

use gatehook_engine::events::{FunctionCall, ToolCall};
use proptest::prelude::*;

use super::*;

pub(crate) fn head() -> SessionHead {
    SessionHead {
        id: "s-1".into(),
        parent: None,
        workspace: "/project".into(),
        agent: "root".into(),
        model: "ollama/llama3".into(),
        started: SystemTime::UNIX_EPOCH,
    }
}

pub(crate) fn message(role: &str, text: &str) -> Entry {
    Entry::Message { message: Message::new(role, text) }
}

pub(crate) fn calls(text: &str, ids: &[&str]) -> Entry {
    let call = |id: &&str| ToolCall {
        id: Some((*id).into()),
        kind: "function".into(),
        function: FunctionCall { name: "shell".into(), arguments: "{\"cmd\":\"ls\"}".into() },
        ..ToolCall::default()
    };
    let tool_calls = (!ids.is_empty()).then(|| ids.iter().map(call).collect());
    Entry::Message { message: Message { tool_calls, ..Message::new("assistant", text) } }
}

pub(crate) fn result(id: &str, text: &str) -> Entry {
    Entry::Message { message: Message { tool_call_id: Some(id.into()), ..Message::new("tool", text) } }
}

pub(crate) fn said(text: &str) -> Entry {
    Entry::Said { thinking: false, text: text.into() }
}

pub(crate) fn turn(number: u64) -> Entry {
    Entry::Turn { number }
}

pub(crate) fn end() -> Entry {
    Entry::TurnEnd { reason: "normal".into() }
}

pub(crate) fn compacted(summary: &str, kept: u64) -> Entry {
    Entry::Compacted { summary: summary.into(), kept, source: "auto".into() }
}

fn of(entries: &[Entry]) -> Conversation {
    Conversation::of(&head(), entries)
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.content.as_deref().unwrap_or_default()).collect()
}

/// Two turns of a question and an answer.
fn two_turns() -> Vec<Entry> {
    [1, 2]
        .into_iter()
        .flat_map(|number| {
            let text = |role: &str| message(role, &format!("{role} {number}"));
            [turn(number), text("user"), text("assistant"), end()]
        })
        .collect()
}

#[test]
fn a_session_is_what_its_entries_say() {
    let granted = |rule: Option<&str>, mode: Option<&str>| Entry::Granted {
        rule: rule.map(Into::into),
        mode: mode.map(Into::into),
    };
    let spent = |cost| Entry::Spent { input_tokens: 10, output_tokens: 2, cost };
    let mut entries = two_turns();
    entries.extend([granted(Some("shell:cmd=ls*"), None), granted(None, Some("balanced")), granted(None, None)]);
    entries.extend([spent(None), spent(Some(0.5)), spent(Some(0.25))]);
    entries.extend([Entry::Switched { agent: "helper".into() }, Entry::Model { model: "openai/gpt".into() }]);
    let conversation = of(&entries);
    assert_eq!((conversation.turn(), &**conversation.agent(), &**conversation.model()), (2, "helper", "openai/gpt"));
    assert_eq!(conversation.chosen_model().map(|model| &**model), Some("openai/gpt"));
    entries.push(Entry::Switched { agent: "root".into() });
    assert_eq!(of(&entries).chosen_model(), None, "another agent has its own");
    assert_eq!(conversation.rules(), ["shell:cmd=ls*".into()]);
    assert_eq!(conversation.mode().map(|mode| &**mode), Some("balanced"));
    let total = Spent { calls: 3, input_tokens: 30, output_tokens: 6, cost: Some(0.75), context: 12 };
    assert_eq!(conversation.spent(), total);
    assert!(!conversation.is_interrupted());
}

#[test]
fn a_turn_that_did_not_end_was_interrupted() {
    assert!(of(&[turn(1)]).is_interrupted());
    assert!(!of(&[turn(1), end()]).is_interrupted());
    assert!(of(&[said("he")]).is_interrupted());
}

#[test]
fn a_summary_stands_for_all_but_the_last_messages() {
    let mut entries = vec![message("system", "be kind")];
    entries.extend(two_turns());
    entries.extend([compacted("sum", 2), turn(3), message("user", "user 3")]);
    let conversation = of(&entries);
    let summary = format!("{SUMMARY}sum");
    assert_eq!(texts(conversation.messages()), ["be kind", &*summary, "user 2", "assistant 2", "user 3"]);
    assert_eq!(conversation.all().len(), 6, "the original stays");
    let again = of(&[&entries[..], &[compacted("sum of sums", 100)]].concat());
    assert_eq!(texts(again.messages())[1], format!("{SUMMARY}sum of sums"));
    assert_eq!(texts(again.messages()).len(), 5, "what was compacted does not come back");
}

#[test]
fn a_turn_is_undone_as_a_whole() {
    let mut conversation = of(&two_turns());
    for left in [&["user 1", "assistant 1"][..], &[]] {
        conversation.apply(&Entry::Undone { messages: conversation.last_turn().unwrap() });
        assert_eq!(texts(conversation.messages()), left);
    }
    assert_eq!((conversation.last_turn(), conversation.turn()), (None, 2));
}

#[test]
fn what_is_undone_takes_the_summary_with_it_that_tells_of_it() {
    let mut conversation = of(&[two_turns(), vec![compacted("sum", 0)]].concat());
    assert_eq!(conversation.messages().len(), 1);
    conversation.apply(&Entry::Undone { messages: 2 });
    assert_eq!(texts(conversation.messages()), ["user 1", "assistant 1"]);
    assert!(conversation.compactions().is_empty());
}

#[test]
fn what_was_interrupted_is_mended_when_it_goes_on() {
    let entries = [turn(1), message("user", "go"), calls("", &["a", "b"]), result("a", "1")];
    let mut closed = of(&entries);
    assert!(closed.is_open());
    closed.close();
    let folded_later = of(&[&entries[..], &[turn(2)]].concat());
    assert_eq!(closed.messages(), folded_later.messages());
    assert_eq!(closed.messages().len(), 4);
    assert!(closed.messages()[3].content.as_deref().unwrap().starts_with("interrupted"));
}

/// Says how a provider would refuse these messages.
fn refused(messages: &[Message]) -> Option<String> {
    let mut asked: VecDeque<Option<Arc<str>>> = VecDeque::new();
    for (at, message) in messages.iter().enumerate() {
        match (&*message.role, asked.pop_front()) {
            ("tool", Some(id)) if id == message.tool_call_id => {}
            ("tool", id) => return Some(format!("message {at} answers {:?} instead of {id:?}", message.tool_call_id)),
            (_, Some(id)) => return Some(format!("{id:?} is not answered before message {at}")),
            (_, None) => asked = message.tool_calls.iter().flatten().map(|call| call.id.clone()).collect(),
        }
    }
    asked.pop_front().map(|id| format!("{id:?} is not answered"))
}

fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["a", "b", "c"])
}

fn entry() -> impl Strategy<Value = Entry> {
    let role = prop::sample::select(&["user", "system", "assistant", "tool", "other"][..]);
    prop_oneof![
        3 => prop::collection::vec(id(), 0..4).prop_map(|ids| calls("so", &ids)),
        6 => id().prop_map(|id| result(id, "done")),
        2 => role.prop_map(|role| message(role, "text")),
        2 => any::<bool>().prop_map(|thinking| Entry::Said { thinking, text: "piece".into() }),
        1 => (0..9u64).prop_map(turn),
        1 => Just(end()),
        1 => (0..9u64).prop_map(|kept| compacted("sum", kept)),
        1 => prop_oneof![0..9u64, Just(u64::MAX)].prop_map(|messages| Entry::Undone { messages }),
        1 => Just(Entry::Notice { level: "info".into(), text: "x".into() }),
        1 => any::<(u64, u64, Option<f64>)>().prop_map(|(input_tokens, output_tokens, cost)| Entry::Spent {
            input_tokens, output_tokens, cost
        }),
    ]
}

proptest! {
    #[test]
    fn a_provider_takes_the_messages_of_whatever_was_kept(entries in prop::collection::vec(entry(), 0..40)) {
        let mut conversation = Conversation::new(&head());
        for at in 0..=entries.len() {
            let mut resumed = conversation.clone();
            resumed.close();
            prop_assert_eq!(refused(resumed.messages()), None, "window after {} of {:?}", at, entries);
            prop_assert_eq!(refused(resumed.all()), None, "all after {} of {:?}", at, entries);
            prop_assert!(!resumed.is_open());
            if !conversation.is_open() {
                prop_assert_eq!(conversation.messages(), resumed.messages());
            }
            if let Some(entry) = entries.get(at) {
                conversation.apply(entry);
            }
        }
    }

    #[test]
    fn a_session_that_goes_on_is_the_one_that_was_never_left(
        before in prop::collection::vec(entry(), 0..30),
        after in prop::collection::vec(entry(), 0..10),
    ) {
        let mut resumed = Conversation::of(&head(), &before);
        resumed.close();
        let mut at_once = Conversation::of(&head(), &before);
        for entry in [&[turn(7)][..], &after].concat() {
            resumed.apply(&entry);
            at_once.apply(&entry);
        }
        prop_assert_eq!(resumed.messages(), at_once.messages());
        prop_assert_eq!(resumed.all(), at_once.all());
        prop_assert_eq!(resumed.last_turn(), at_once.last_turn());
    }
}
