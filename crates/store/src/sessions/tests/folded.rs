//! What is kept folds into what happened.

use gatehook_events::Fold;
use gatehook_events::fold::Change;
use proptest::prelude::*;

use super::*;

fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["a", "b"])
}

fn calls(ids: Vec<&str>) -> Entry {
    let call = |id: &str| ToolCall { id: Some(id.into()), ..ToolCall::default() };
    let tool_calls = Some(ids.into_iter().map(call).collect());
    Entry::Message { message: Message { tool_calls, ..Message::new("assistant", "so") } }
}

fn entry() -> impl Strategy<Value = Entry> {
    let role = prop::sample::select(&["user", "assistant", "tool"][..]);
    prop_oneof![
        6 => (any::<bool>(), "[a-z\n]{0,3}").prop_map(|(thinking, text)| Entry::Said { thinking, text: text.into() }),
        3 => (role, "[a-zä\n]{0,9}").prop_map(|(role, text)| message(role, &text)),
        2 => prop::collection::vec(id(), 0..3).prop_map(calls),
        4 => id().prop_map(|id| Entry::Message {
            message: Message { tool_call_id: Some(id.into()), ..Message::new("tool", "done") }
        }),
        1 => (0..4u64).prop_map(|messages| Entry::Undone { messages }),
        1 => (0..4u64).prop_map(|kept| Entry::Compacted { summary: "sum".into(), kept, source: "auto".into() }),
        1 => prop_oneof![Just(turn(1)), Just(end())],
        1 => Just(Entry::Notice { level: "info".into(), text: "x".into() }),
    ]
}

/// The messages of entries, as lines; closed where they are all that there is.
fn lines<'e>(entries: impl IntoIterator<Item = &'e Entry>, closed: bool) -> String {
    let (mut fold, mut lines) = (Fold::default(), Vec::new());
    let mut changes: Vec<Change> = entries.into_iter().flat_map(|entry| fold.apply(entry)).collect();
    if closed {
        changes.extend(fold.close());
    }
    for change in changes {
        match change {
            Change::Add(message) => lines.push(message.to_line().unwrap()),
            Change::Keep(count) => lines.truncate(count),
            Change::Compact { .. } => {}
        }
    }
    lines.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn pieces_that_are_gone_or_joined_change_nothing(
        batches in prop::collection::vec(prop::collection::vec(entry(), 1..4), 0..12),
        again in 0..12usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let Place { _folder, path } = place();
        runtime.block_on(async {
            let mut sessions = kept(&path, "s", &[]).await;
            let mut happened = Vec::new();
            for (at, batch) in batches.into_iter().enumerate() {
                if at == again {
                    sessions = kept(&path, "s", &[]).await;
                }
                happened.extend(batch.clone());
                sessions.append(&"s".into(), batch).await.unwrap();
                let kept = entries(&path, "s");
                prop_assert_eq!(lines(&kept, true), lines(&happened, true), "{:?} is kept as {:?}", happened, kept);
                let transcript = std::fs::read_to_string(sessions.transcript("s")).unwrap();
                prop_assert_eq!(transcript, lines(&happened, false), "{:?}", happened);
            }
            Ok(())
        })?;
    }
}
