use super::*;
use crate::{FunctionCall, ToolCall};

fn message(role: &str, text: &str) -> Entry {
    Entry::Message { message: Message::new(role, text) }
}

fn calls(ids: &[&str]) -> Entry {
    let call = |id: &&str| ToolCall {
        id: Some((*id).into()),
        function: FunctionCall { name: "shell".into(), arguments: "{}".into() },
        ..ToolCall::default()
    };
    let tool_calls = Some(ids.iter().map(call).collect());
    Entry::Message { message: Message { role: "assistant".into(), tool_calls, ..Message::default() } }
}

fn result(id: &str, text: &str) -> Entry {
    Entry::Message { message: Message { tool_call_id: Some(id.into()), ..Message::new("tool", text) } }
}

fn said(text: &str) -> Entry {
    Entry::Said { thinking: false, text: text.into() }
}

fn thought(text: &str) -> Entry {
    Entry::Said { thinking: true, text: text.into() }
}

fn end() -> Entry {
    Entry::TurnEnd { reason: "canceled".into() }
}

/// The messages of these entries, as `role: text`, calls as their identities.
fn folded(entries: &[Entry]) -> Vec<String> {
    let mut fold = Fold::default();
    let mut messages: Vec<String> = Vec::new();
    for change in entries.iter().flat_map(|entry| fold.apply(entry)).collect::<Vec<_>>() {
        match change {
            Change::Add(message) => messages.push(shown(&message)),
            Change::Keep(count) => messages.truncate(count),
            Change::Compact { from, summary, .. } => messages.push(format!("{summary} for {from}")),
        }
    }
    messages
}

fn shown(message: &Message) -> String {
    let ids = message.tool_calls.iter().flatten().filter_map(|call| call.id.as_deref());
    let text = message.content.as_deref().unwrap_or_default().replace("\n\n", " ");
    let of = message.tool_call_id.as_deref().map(|id| format!("({id})")).unwrap_or_default();
    let thinking = message.thinking.as_deref().map(|it| format!("<{it}>")).unwrap_or_default();
    format!("{}{of}: {thinking}{text}{}", message.role, ids.collect::<Vec<_>>().join(" "))
}

#[test]
fn an_answer_that_is_whole_stands_for_its_pieces() {
    assert_eq!(folded(&[said("he"), said("llo"), message("assistant", "hello")]), ["assistant: hello"]);
}

#[test]
fn an_answer_that_was_cut_off_says_so() {
    assert_eq!(folded(&[thought("hm"), said("he"), end()]), ["assistant: <hm>he [interrupted]"]);
    assert_eq!(folded(&[thought("hm"), message("user", "stop")]), ["assistant: <hm>[interrupted]", "user: stop"]);
    assert_eq!(folded(&[said(""), end()]), [""; 0]);
}

#[test]
fn a_notice_does_not_cut_an_answer_off() {
    let notice = Entry::Notice { level: "info".into(), text: "slow".into() };
    assert_eq!(folded(&[said("he"), notice, said("llo"), message("assistant", "hello")]), ["assistant: hello"]);
}

#[test]
fn results_stand_in_the_order_of_their_calls() {
    let entries = [calls(&["a", "b"]), result("b", "2"), result("a", "1")];
    assert_eq!(folded(&entries), ["assistant: a b", "tool(a): 1", "tool(b): 2"]);
}

#[test]
fn a_call_is_answered_once() {
    let entries = [result("a", "early"), calls(&["a"]), result("x", "?"), result("a", "1"), result("a", "again")];
    assert_eq!(folded(&entries), ["assistant: a", "tool(a): 1"]);
}

#[test]
fn calls_of_one_identity_are_answered_one_after_another() {
    let entries = [calls(&["a", "a"]), result("a", "1"), result("a", "2")];
    assert_eq!(folded(&entries), ["assistant: a a", "tool(a): 1", "tool(a): 2"]);
}

#[test]
fn what_comes_between_calls_and_results_stands_behind_them() {
    let entries = [calls(&["a", "b"]), result("a", "1"), message("user", "mind"), result("b", "2")];
    assert_eq!(folded(&entries), ["assistant: a b", "tool(a): 1", "tool(b): 2", "user: mind"]);
}

#[test]
fn a_call_without_a_result_is_said_to_be_interrupted() {
    let unanswered = format!("tool(b): {UNANSWERED}");
    for next in [end(), Entry::Turn { number: 2 }, message("assistant", "so")] {
        let messages = folded(&[calls(&["a", "b"]), result("a", "1"), next]);
        assert_eq!(messages.iter().take(3).collect::<Vec<_>>(), ["assistant: a b", "tool(a): 1", &unanswered]);
    }
}

#[test]
fn nothing_parts_calls_from_their_results() {
    let group = [message("user", "go"), calls(&["a", "b"]), result("a", "1"), result("b", "2")];
    for (count, left) in [(1, 1), (2, 1), (3, 1), (4, 0), (u64::MAX, 0), (0, 4)] {
        let undone = [&group[..], &[Entry::Undone { messages: count }]].concat();
        assert_eq!(folded(&undone).len(), left, "{count}");
        let compacted = Entry::Compacted { summary: "sum".into(), kept: count, source: "auto".into() };
        let compacted = [&group[..], &[compacted]].concat();
        assert_eq!(folded(&compacted).last().unwrap(), &format!("sum for {left}"), "{count}");
    }
}
