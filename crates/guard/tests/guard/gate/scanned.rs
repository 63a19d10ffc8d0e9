//! Hooks that tell how far a text is settled: nothing else is held, and nothing leaks.

use std::sync::Arc;

use gatehook_engine::events::{Event, FunctionCall, Output, Permission, ToolCall};
use gatehook_engine::handler::{DefinitionError, Run};
use gatehook_engine::{Handler, HandlerEnv, HandlerFactory, HookCall, HookDefinition, Reply, Scan, Settled, Streaming};
use gatehook_guard::UpstreamEnd;
use gatehook_inference::{ErrorKind, Route};
use gatehook_scan::{Carry, HOLD_LIMIT, redact};

use super::{Came, finish, gate, send, stream};
use crate::streams::{ROUTES, Say, call, frames, gather, has_more, text, thinking};
use crate::world::{Exchange, World};

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// Redacts secrets, and scans for them.
pub(crate) struct Secrets;

impl Handler for Secrets {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        let new = |text: &str| Arc::from(redact(text));
        let calls = call.input.tool_calls.iter().flat_map(|calls| calls.iter()).map(|call| {
            let arguments = new(&call.function.arguments);
            ToolCall { function: FunctionCall { arguments, ..call.function.clone() }, ..call.clone() }
        });
        let output = Output {
            permission: Some(Permission::Modify),
            output_text: call.input.output_text.as_deref().map(new),
            output_thinking: call.input.output_thinking.as_deref().map(new),
            tool_calls: call.input.tool_calls.is_some().then(|| calls.collect()),
            ..Output::default()
        };
        Box::pin(async { Ok(Reply::Direct(Some(output))) })
    }

    fn streams(&self) -> Streaming {
        Streaming::Scan
    }

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(Carrying(Carry::new())))
    }
}

struct Carrying(Carry);

impl Scan for Carrying {
    fn push(&mut self, more: &str, ended: bool) -> Settled {
        self.0.push(more, ended)
    }

    fn waits(&self, held: &str, delays: bool) -> bool {
        Scan::waits(&self.0, held, delays)
    }
}

impl HandlerFactory for Secrets {
    fn create(&self, _: &HookDefinition, _: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        Ok(Arc::new(Secrets))
    }
}

fn secrets() -> World {
    World::new().handler(Event::PostInference, "secrets", |hook| hook, Arc::new(Secrets))
}

fn is_clean(came: &Came, what: &str) {
    assert!(!came.text().contains("16C7e42F"), "{what}: {}", came.text());
    assert!(!came.text().contains("38347Ae1"), "{what}: {}", came.text());
}

#[tokio::test]
async fn a_secret_that_is_split_anywhere_never_leaves_and_the_rest_does() {
    let whole = format!("Look: {SECRET} is – wörtlich – 🔑 it.");
    let want = redact(&whole);
    assert_ne!(want, whole);
    for &route in ROUTES {
        let cuts = whole.char_indices().map(|(at, _)| at);
        let mut splits: Vec<Vec<&str>> = cuts.map(|cut| vec![&whole[..cut], &whole[cut..]]).collect();
        splits.push(whole.split("").collect());
        for split in splits {
            let says: Vec<Say> = split.iter().map(|piece| text(piece)).collect();
            let (_, came, gathered) = stream(secrets(), route, &says).await;
            assert_eq!(gathered.text, want, "{route:?} {split:?}: {}", came.text());
            assert!(gathered.over, "{route:?} {split:?}");
            is_clean(&came, &format!("{route:?} {split:?}"));
        }
    }
}

#[tokio::test]
async fn nor_does_it_in_thinking_or_arguments() {
    let whole = format!("I use {SECRET} now.");
    let arguments = format!(r#"{{"key":"{SECRET}","x":1}}"#);
    for &route in ROUTES.iter().filter(|route| has_more(**route)) {
        for cut in whole.char_indices().map(|(at, _)| at) {
            let says = [thinking(&whole[..cut]), thinking(&whole[cut..]), text("Done."), call("c1", "put", &arguments)];
            let (_, came, gathered) = stream(secrets(), route, &says).await;
            assert_eq!(gathered.thinking, redact(&whole), "{route:?} {cut}: {}", came.text());
            assert_eq!(gathered.text, "Done.", "{route:?} {cut}: {}", came.text());
            assert_eq!(gathered.calls[0].2, redact(&arguments), "{route:?} {cut}");
            is_clean(&came, &format!("{route:?} {cut}"));
        }
    }
}

#[tokio::test]
async fn clean_text_leaves_as_it_came_and_no_hook_is_asked() {
    for &route in ROUTES {
        let says = [thinking("Let me think."), text("All "), text("is fine, "), text("really.")];
        let (exchange, came, _) = stream(secrets(), route, &says).await;
        assert_eq!(came.text(), frames(route, &says).concat(), "{route:?}");
        assert!(exchange.seen.verdicts().is_empty(), "{route:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_part_of_a_secret_does_not_wait() {
    for &route in ROUTES {
        let says = [text("All is "), text("fine, "), text("really.")];
        let (_, came, _) = stream(secrets(), route, &says).await;
        let at = |word: &str| frames(route, &says).iter().position(|frame| frame.contains(word)).unwrap();
        // Of `All is ` nothing can grow once a space has followed.
        assert!(came.after[at("fine")] > 0, "{route:?}: {:?}", came.after);
    }
}

#[tokio::test]
async fn the_first_text_of_a_long_read_does_not_wait_for_the_rest_of_it() {
    for &route in ROUTES {
        let says: Vec<Say> = (0..60).map(|_| text("word ")).collect();
        let read = frames(route, &says).concat();
        let exchange = Exchange::from(World::new().builtin(Event::PostInference, "redact_secrets", &[]));
        let mut gate = gate(&exchange, route).await.expect("a gate");
        gate.push(read.clone().into());
        let mut came = Came::default();
        while let Some(bytes) = gate.take() {
            came.bytes.extend_from_slice(&bytes);
        }
        assert!((1..read.len() / 2).contains(&came.bytes.len()), "{route:?}: {}", came.text());
        assert!(!gate.wants_more(), "{route:?}: the rest comes first");
        gate.end(UpstreamEnd::Over);
        finish(&mut gate, &mut came).await;
        assert_eq!((came.text(), came.refusal.is_none()), (&*read, true), "{route:?}");
    }
}

#[tokio::test]
async fn a_secret_in_the_rest_of_a_long_read_is_found_though_its_beginning_has_left() {
    for &route in ROUTES {
        let says: Vec<Say> = (0..60).map(|at| text(if at == 50 { SECRET } else { " word " })).collect();
        let exchange = Exchange::from(secrets());
        let mut gate = gate(&exchange, route).await.expect("a gate");
        let came = send(&mut gate, [frames(route, &says).concat().into()]).await;
        is_clean(&came, &format!("{route:?}"));
        assert_eq!(gather(route, &came.bytes).text.matches("word").count(), 59, "{route:?}");
    }
}

#[tokio::test]
async fn a_private_key_is_swallowed_from_its_first_line() {
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----",
        "MIIEow+/AbCdEfGhIjKlMnOp\n".repeat(40)
    );
    let whole = format!("Here:\n{key}\nDone.");
    let says: Vec<Say> = whole.as_bytes().chunks(7).map(|piece| text(std::str::from_utf8(piece).unwrap())).collect();
    for &route in ROUTES {
        let (_, came, gathered) = stream(secrets(), route, &says).await;
        assert_eq!(gathered.text, redact(&whole), "{route:?}");
        assert!(!came.text().contains("MIIE"), "{route:?}: {}", came.text());
    }
}

#[tokio::test]
async fn what_grows_without_an_end_is_refused() {
    let mut says = vec![text("Here: -----BEGIN RSA PRIVATE KEY-----\n")];
    says.extend((0..HOLD_LIMIT / 1000).map(|_| text(&format!("MIIE{}\n", "A".repeat(60)).repeat(16))));
    let (_, came, gathered) = stream(secrets(), Route::ChatCompletions, &says).await;
    assert_eq!(came.refusal.unwrap().kind, ErrorKind::HookUnavailable);
    assert!(!String::from_utf8_lossy(&came.bytes).contains("MIIE"));
    assert!(gathered.text.is_empty() || "Here: ".starts_with(&gathered.text), "{:?}", gathered.text);
}

#[tokio::test]
async fn beside_a_hook_that_wants_the_whole_it_sees_the_whole_too() {
    let world = secrets().hook(Event::PostInference, |_| None);
    let whole = format!("Look: {SECRET} is it.");
    let (exchange, came, gathered) = stream(world, Route::Messages, &[text(&whole[..20]), text(&whole[20..])]).await;
    assert_eq!(gathered.text, redact(&whole));
    is_clean(&came, "buffered");
    let seen = exchange.seen.inputs(Event::PostInference);
    assert_eq!(seen[0].output_text.as_deref(), Some(&*redact(&whole)), "behind the redaction");
}

#[tokio::test]
async fn between_two_blocks_a_text_does_not_wait_for_the_second() {
    for route in [Route::Messages, Route::Responses] {
        let says = [thinking("hm token"), text("one token"), call("c1", "ls", "{}"), text("two")];
        let (_, came, gathered) = stream(secrets(), route, &says).await;
        let frames = frames(route, &says);
        assert_eq!(came.text(), frames.concat(), "{route:?}");
        assert_eq!(gathered.text, "one tokentwo", "{route:?}");
        // The thinking has left once the text's block has begun.
        let begun = frames.iter().position(|frame| frame.contains("one token")).unwrap();
        let before: usize = frames[..begun].iter().map(String::len).sum();
        assert!(came.after[begun] >= before, "{route:?}: {:?}", came.after);
    }
}

#[tokio::test]
async fn signed_thinking_that_would_have_to_change_ends_the_answer() {
    let frames = frames(Route::Messages, &[text("Well."), thinking(&format!("I use {SECRET} now.")), text("Done.")]);
    let signed = frames
        .concat()
        .replace(r#"{"thinking":"","type":"thinking"}"#, r#"{"thinking":"","signature":"","type":"thinking"}"#);
    assert!(signed.contains("signature"));
    let exchange = crate::world::Exchange::from(secrets());
    let mut gate = super::gate(&exchange, Route::Messages).await.unwrap();
    let came = super::send(&mut gate, signed.split_inclusive("\n\n").map(|frame| frame.to_owned().into())).await;
    is_clean(&came, "signed");
    assert_eq!(came.refusal.as_ref().unwrap().kind, ErrorKind::ModifyUnsupported);
    let gathered = crate::streams::gather(Route::Messages, &came.bytes);
    assert_eq!((&*gathered.text, gathered.over), ("Well.", true), "{}", came.text());
}

/// Chat completions and the native routes have no blocks: thinking and text may take turns.
#[tokio::test]
async fn where_two_kinds_take_turns_no_more_has_left_than_before_the_first_turn() {
    for route in [Route::ChatCompletions, Route::Chat, Route::Generate] {
        let whole = format!("Look: {SECRET} is it.");
        let says: Vec<Say> = whole.chars().flat_map(|char| [text(&char.to_string()), thinking(".")]).collect();
        let (_, came, gathered) = stream(secrets(), route, &says).await;
        assert_eq!(gathered.text, redact(&whole), "{route:?}: {}", came.text());
    }
}

#[tokio::test]
async fn a_blocked_phrase_that_is_split_anywhere_never_leaves() {
    let whole = "The codename is red falcon, keep it.";
    for &route in ROUTES {
        for cut in 0..=whole.len() {
            let world = World::new().builtin(Event::PostInference, "block_patterns", &["red falcon"]);
            let (_, came, gathered) = stream(world, route, &[text(&whole[..cut]), text(&whole[cut..])]).await;
            assert_eq!(came.refusal.as_ref().unwrap().kind, ErrorKind::Denied, "{route:?} {cut}");
            assert!(
                !came.text().contains("red") && !came.text().contains("falcon"),
                "{route:?} {cut}: {}",
                came.text()
            );
            assert!("The codename is ".starts_with(&gathered.text), "{route:?} {cut}: {}", came.text());
        }
    }
}
