//! Values in the place of placeholders, in streams.

use gatehook_engine::HookDefinition;
use gatehook_engine::definition::{Stream, StreamMode};
use gatehook_engine::events::{Event, Input, Message, Output, Permission};
use gatehook_inference::Route;

use super::{gate, stream};
use crate::streams::{ROUTES, call, frames, has_more, text, thinking};
use crate::world::{Exchange, World};

const VALUE: &str = "\"jane\"@x.org";

/// Puts `<EMAIL_1>` in the place of what the user says.
fn takes_out(_: &Input) -> Option<Output> {
    Some(Output {
        permission: Some(Permission::Modify),
        messages: Some(vec![Message::new("user", "<EMAIL_1>")]),
        placeholders: vec![("<EMAIL_1>".into(), VALUE.into())],
        ..Output::default()
    })
}

fn world() -> World {
    World::new().hook(Event::PreInference, takes_out)
}

#[tokio::test]
async fn a_placeholder_is_restored_wherever_it_is_split_and_nothing_else_waits() {
    let whole = "to <EMAIL_1>, <EMAIL_2> or <EMAIL_";
    let want = whole.replace("<EMAIL_1>", VALUE);
    for &route in ROUTES {
        for cut in 0..=whole.len() {
            let says = [text(&whole[..cut]), text(&whole[cut..])];
            let (_, came, gathered) = stream(world(), route, &says).await;
            assert_eq!((&gathered.text, gathered.over), (&want, true), "{route:?} {cut}: {}", came.text());
        }
        let says = [text("a < b "), text("and so on")];
        let (_, came, _) = stream(world(), route, &says).await;
        assert_eq!(came.text(), frames(route, &says).concat(), "{route:?}");
        let at = frames(route, &says).iter().position(|frame| frame.contains("a < b")).unwrap();
        assert!(came.after[at] > 0, "{route:?}: {:?}", came.after);
    }
}

#[tokio::test]
async fn nor_does_it_matter_what_interrupts_it() {
    let whole = "to <EMAIL_1>, or <EMAIL_";
    for &route in ROUTES.iter().filter(|route| has_more(**route)) {
        for cut in 0..=whole.len() {
            for between in [thinking("Hm."), call("c1", "ls", "{}")] {
                let says = [text(&whole[..cut]), between, text(&whole[cut..])];
                let (_, came, gathered) = stream(world(), route, &says).await;
                let want = whole.replace("<EMAIL_1>", VALUE);
                assert_eq!((&gathered.text, gathered.over), (&want, true), "{route:?} {cut}: {}", came.text());
            }
        }
    }
}

#[tokio::test]
async fn so_it_is_in_thinking_and_arguments() {
    for &route in ROUTES.iter().filter(|route| has_more(**route)) {
        let says = [thinking("is <EMA"), thinking("IL_1> it?"), call("c1", "mail", r#"{"to":"<EMAIL_1>"}"#)];
        let (_, came, gathered) = stream(world(), route, &says).await;
        let arguments: serde_json::Value = serde_json::from_str(&gathered.calls[0].2).unwrap();
        assert_eq!(arguments["to"], VALUE, "{route:?}: {}", came.text());
        // Anthropic signs thinking: it stays as it is.
        let value = if route == Route::Messages { "<EMAIL_1>" } else { VALUE };
        assert_eq!(gathered.thinking, format!("is {value} it?"), "{route:?}: {}", came.text());
    }
}

#[tokio::test]
async fn it_comes_after_all_hooks_on_what_they_let_go() {
    let window = |hook| {
        let stream = Stream { size: Some(1), overlap: Some(8), ..Stream::new(StreamMode::Window) };
        HookDefinition { stream: Some(stream), ..hook }
    };
    let says = |input: &Input| {
        let text = input.output_text.as_deref()?.replace("HIM", "<EMAIL_1> (him)").replace("gone ", "");
        Some(Output { permission: Some(Permission::Modify), output_text: Some(text.into()), ..Output::default() })
    };
    for &route in ROUTES {
        let worlds = [
            world().hook_with(Event::PostInference, "", window, move |input| Ok(says(input))),
            world().hook(Event::PostInference, says),
        ];
        for (world, how) in worlds.into_iter().zip(["window", "buffer"]) {
            let pieces = ["ask <EM", "AIL_1>, ", "gone ", "and HIM", ", and <EMAIL", "_1>"].map(text);
            let (exchange, came, gathered) = stream(world, route, &pieces).await;
            let want = format!("ask {VALUE}, and {VALUE} (him), and {VALUE}");
            assert_eq!((gathered.text, gathered.over), (want, true), "{route:?} {how}: {}", came.text());
            let seen = exchange.seen.inputs(Event::PostInference);
            assert!(
                !seen.iter().any(|input| input.output_text.as_deref().unwrap().contains("jane")),
                "{route:?} {how}"
            );
        }
    }
}

#[tokio::test]
async fn without_a_placeholder_there_is_no_gate() {
    let nothing = |_: &Input| Some(Output { permission: Some(Permission::Allow), ..Output::default() });
    let exchange = Exchange::from(World::new().hook(Event::PreInference, nothing));
    assert!(gate(&exchange, Route::Chat).await.is_none());
}
