//! Hooks that see a stream in segments.

use std::time::Duration;

use gatehook_engine::HookDefinition;
use gatehook_engine::definition::{Stream, StreamMode};
use gatehook_engine::events::{Event, Input, Output, Permission, Segment, SegmentKind};
use gatehook_guard::UpstreamEnd;
use gatehook_inference::{ErrorKind, Route};
use tokio::time::{Instant, sleep};

use super::{Came, drain, finish, gate, stream};
use crate::streams::{ROUTES, frames, gather, stop, text, thinking};
use crate::world::{Exchange, World};

fn window(size: usize, overlap: usize, holdback: usize) -> impl FnOnce(HookDefinition) -> HookDefinition {
    let stream = Stream {
        size: Some(size),
        overlap: Some(overlap),
        holdback: Some(holdback),
        ..Stream::new(StreamMode::Window)
    };
    move |hook| HookDefinition { stream: Some(stream), ..hook }
}

fn rewrites(input: &Input, with: impl Fn(&str) -> String) -> Option<Output> {
    let permission = Some(Permission::Modify);
    let new = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(|text| with(text).into());
    Some(Output {
        permission,
        output_text: new(&input.output_text),
        output_thinking: new(&input.output_thinking),
        ..Output::default()
    })
}

fn texts(exchange: &Exchange) -> Vec<String> {
    let seen = exchange.seen.inputs(Event::PostInference);
    seen.iter().map(|input| input.output_text.as_deref().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn text_leaves_in_judged_segments_of_the_windows_size() {
    for &route in ROUTES {
        let world = World::new().hook_with(Event::PostInference, "", window(8, 4, 0), |_| Ok(None));
        let says: Vec<_> = ["one ", "two ", "three", "!"].map(text).into();
        let (exchange, came, _) = stream(world, route, &says).await;
        assert_eq!(came.text(), frames(route, &says).concat(), "{route:?}");
        assert_eq!(texts(&exchange), ["one two ", "two three!"], "{route:?}");
        let seen = exchange.seen.inputs(Event::PostInference);
        let segments: Vec<_> = seen.iter().map(|input| input.segment.unwrap()).collect();
        let segment = |index, final_| Segment { index, final_, kind: SegmentKind::Text };
        assert_eq!(segments, [segment(0, false), segment(1, true)], "{route:?}");
        let last = seen.last().unwrap();
        assert_eq!(last.done_reason.as_deref(), Some(stop(route)), "{route:?}");
    }
}

#[tokio::test]
async fn hooks_are_told_of_the_end_even_if_all_text_was_judged_before() {
    let say = |input: &Input| {
        let last = input.segment.is_some_and(|segment| segment.final_);
        Ok(rewrites(input, |text| format!("{text}{}", if last { "!" } else { "" })))
    };
    let world = World::new().hook_with(Event::PostInference, "", window(1, 2, 0), say);
    let (exchange, came, gathered) = stream(world, Route::ChatCompletions, &[text("one"), text("two")]).await;
    assert_eq!(texts(&exchange), ["one", "netwo", "wo"]);
    assert_eq!((&*gathered.text, gathered.over), ("onetwo!", true), "{}", came.text());
}

#[tokio::test]
async fn an_end_that_is_refused_has_not_left_even_if_all_text_has() {
    for &route in ROUTES {
        let say = |input: &Input| {
            let last = input.segment.is_some_and(|segment| segment.final_);
            Ok(last.then(|| Output { permission: Some(Permission::Deny), ..Output::default() }))
        };
        let exchange = Exchange::from(World::new().hook_with(Event::PostInference, "", window(4, 0, 0), say));
        let (mut gate, mut came) = (gate(&exchange, route).await.unwrap(), Came::default());
        for frame in frames(route, &[text("said")]) {
            gate.push(frame.into());
            // A host takes what there is before hooks have had time to answer.
            while let Some(bytes) = gate.take() {
                came.bytes.extend_from_slice(&bytes);
            }
            drain(&mut gate, &mut came).await;
        }
        gate.end(UpstreamEnd::Over);
        finish(&mut gate, &mut came).await;
        assert_eq!(texts(&exchange), ["said", ""], "{route:?}");
        assert_eq!(came.refusal.as_ref().map(|refusal| refusal.kind), Some(ErrorKind::Denied), "{route:?}");
        let gathered = gather(route, &came.bytes);
        assert_eq!((&*gathered.text, gathered.over), ("said", true), "{route:?}");
        assert!(came.text().contains("\"hook\""), "{route:?}: {}", came.text());
    }
}

#[tokio::test]
async fn what_is_judged_has_left_before_the_next_segment_is_full() {
    let world = World::new().hook_with(Event::PostInference, "", window(4, 0, 0), |_| Ok(None));
    let (_, came, _) = stream(world, Route::ChatCompletions, &["ab", "cd", "ef", "gh"].map(text)).await;
    // The role; then two reads for each segment.
    let grown: Vec<bool> = came.after.windows(2).map(|pair| pair[1] > pair[0]).collect();
    assert_eq!(grown[..4], [false, true, false, true], "{:?}", came.after);
}

#[tokio::test(start_paused = true)]
async fn text_that_waited_long_enough_is_judged_however_little_it_is() {
    let exchange = Exchange::from(World::new().hook_with(Event::PostInference, "", window(1000, 0, 0), |_| Ok(None)));
    let mut gate = gate(&exchange, Route::ChatCompletions).await.unwrap();
    let (start, mut came) = (Instant::now(), Came::default());
    let mut frames = frames(Route::ChatCompletions, &[text("a"), text("b")]).into_iter();
    gate.push(frames.next().unwrap().into());
    gate.push(frames.next().unwrap().into());
    drain(&mut gate, &mut came).await;
    assert_eq!(came.text(), "");
    gate.judged().await;
    assert_eq!(start.elapsed().as_millis(), 50);
    drain(&mut gate, &mut came).await;
    assert_eq!(gather(Route::ChatCompletions, &came.bytes).text, "a");
    frames.for_each(|frame| gate.push(frame.into()));
    gate.end(UpstreamEnd::Over);
    finish(&mut gate, &mut came).await;
    assert_eq!(start.elapsed().as_millis(), 50);
    assert_eq!(gather(Route::ChatCompletions, &came.bytes).text, "ab");
}

/// As the upstream of the benchmark: 100 chunks, 10 ms apart; the hook takes 5 ms.
#[tokio::test(start_paused = true)]
async fn a_slow_hook_delays_the_first_text_and_the_end_by_no_more_than_a_window() {
    let define = |hook| HookDefinition { stream: Some(Stream::new(StreamMode::Window)), ..hook };
    let takes = Duration::from_millis(5);
    let exchange = Exchange::from(World::new().slow_hook(Event::PostInference, define, takes, |_| None));
    let mut gate = gate(&exchange, Route::ChatCompletions).await.unwrap();
    let says: Vec<_> = (0..100).map(|number| text(&format!("word {number} "))).collect();
    let frames = frames(Route::ChatCompletions, &says);
    let (mut came, mut sent) = (Came::default(), None);
    let mut first = None;
    for frame in &frames {
        gate.push(frame.clone().into());
        sent.get_or_insert_with(Instant::now);
        let next = sleep(Duration::from_millis(10));
        tokio::pin!(next);
        loop {
            drain(&mut gate, &mut came).await;
            if first.is_none() && !came.bytes.is_empty() {
                first = Some(sent.unwrap().elapsed());
            }
            tokio::select! {
                () = gate.judged() => {}
                () = &mut next => break,
            }
        }
    }
    let ended = Instant::now();
    gate.end(UpstreamEnd::Over);
    finish(&mut gate, &mut came).await;
    assert_eq!(came.text(), frames.concat());
    // The role came 10 ms before the first text.
    assert!(first.unwrap() <= Duration::from_millis(10 + 60), "{first:?}");
    assert!(ended.elapsed() <= Duration::from_millis(20), "{:?}", ended.elapsed());
    let dispatches = exchange.seen.inputs(Event::PostInference).len();
    assert!((15..=25).contains(&dispatches), "{dispatches}");
}

#[tokio::test(start_paused = true)]
async fn more_is_taken_in_while_a_segment_is_judged_and_is_bounded() {
    let takes = Duration::from_secs(1);
    let exchange = Exchange::from(World::new().slow_hook(Event::PostInference, window(1, 0, 0), takes, |_| None));
    let mut gate = gate(&exchange, Route::ChatCompletions).await.unwrap();
    let mut came = Came::default();
    let says: Vec<_> = (0..2_000).map(|_| text("word ")).collect();
    let mut most = 0;
    for frame in frames(Route::ChatCompletions, &says) {
        if !gate.wants_more() {
            break;
        }
        gate.push(frame.into());
        drain(&mut gate, &mut came).await;
        most = gate.held();
    }
    assert!((256 * 1024..257 * 1024 + 1024).contains(&most), "{most}");
    gate.judged().await;
    drain(&mut gate, &mut came).await;
    assert!(gate.wants_more() || !came.bytes.is_empty());
    assert_eq!(exchange.seen.inputs(Event::PostInference).len(), 2);
}

#[tokio::test]
async fn a_rewrite_changes_what_has_not_left_wherever_the_word_is_cut() {
    for &route in ROUTES {
        let whole = "the code is falcon, keep it";
        for cut in 0..=whole.len() {
            let redact = |input: &Input| Ok(rewrites(input, |text| text.replace("falcon", "[X]")));
            // What is held back is longer than the word.
            let world = World::new().hook_with(Event::PostInference, "", window(1, 16, 6), redact);
            let (_, came, gathered) = stream(world, route, &[text(&whole[..cut]), text(&whole[cut..])]).await;
            assert_eq!(gathered.text, "the code is [X], keep it", "{route:?} {cut}: {}", came.text());
            assert!(!came.text().contains("falcon"), "{route:?} {cut}: {}", came.text());
            assert!(gathered.over, "{route:?} {cut}");
        }
    }
}

#[tokio::test]
async fn of_a_match_across_the_border_what_has_not_left_is_replaced() {
    let redact = |input: &Input| Ok(rewrites(input, |text| text.replace("falcon", "[X]")));
    let world = World::new().hook_with(Event::PostInference, "", window(1, 16, 0), redact);
    let (_, _, gathered) = stream(world, Route::ChatCompletions, &[text("the fal"), text("con"), text(" flies")]).await;
    assert_eq!(gathered.text, "the fal[X] flies");
}

#[tokio::test]
async fn a_reply_may_ask_to_see_the_end_again() {
    let hold = |input: &Input| {
        let text = input.output_text.as_deref().unwrap_or_default();
        let holdback_chars = (!text.ends_with('.')).then_some(3);
        Ok(Some(Output { permission: Some(Permission::Allow), holdback_chars, ..Output::default() }))
    };
    let world = World::new().hook_with(Event::PostInference, "", window(1, 0, 0), hold);
    let (exchange, came, _) = stream(world, Route::ChatCompletions, &[text("abcdé"), text("fg"), text("h.")]).await;
    assert_eq!(texts(&exchange), ["abcdé", "cdéfg", "éfgh.", ""]);
    assert_eq!(gather(Route::ChatCompletions, &came.bytes).text, "abcdéfgh.");
}

#[tokio::test]
async fn thinking_and_text_are_segments_of_their_own() {
    let world = World::new().hook_with(Event::PostInference, "", window(1, 16, 0), |input| {
        Ok(rewrites(input, |text| text.replace("b", "B")))
    });
    let says = [thinking("ab"), thinking("bc"), text("ab"), text("b")];
    let (exchange, _, gathered) = stream(world, Route::ChatCompletions, &says).await;
    assert_eq!((&*gathered.thinking, &*gathered.text), ("aBBc", "aBB"));
    let seen = exchange.seen.inputs(Event::PostInference);
    let kinds: Vec<_> = seen.iter().map(|input| (input.segment.unwrap().kind, input.segment.unwrap().index)).collect();
    use SegmentKind::{Text, Thinking};
    assert_eq!(kinds, [(Thinking, 0), (Thinking, 1), (Text, 0), (Text, 1), (Thinking, 2), (Text, 2)]);
}

#[tokio::test]
async fn a_denial_in_mid_stream_leaves_the_client_with_exactly_what_was_let_go() {
    for &route in ROUTES {
        let judge = |input: &Input| {
            Ok(input
                .output_text
                .as_deref()
                .is_some_and(|text| text.contains("bad"))
                .then(|| Output::block("no bad words")))
        };
        let world = World::new().hook_with(Event::PostInference, "", window(1, 16, 0), judge);
        let (_, came, gathered) = stream(world, route, &[text("good "), text("bad "), text("ugly")]).await;
        assert_eq!((gathered.text.as_str(), gathered.over), ("good ", true), "{route:?}: {}", came.text());
        let stop = match route {
            Route::Chat | Route::Generate => "content_filter",
            Route::Messages => "refusal",
            Route::Responses => "completed",
            Route::ChatCompletions | Route::Completions => "stop",
        };
        assert_eq!(gathered.stop.as_deref(), Some(stop), "{route:?}");
        let hook = gathered.hook.unwrap();
        assert_eq!((&hook["permission"], &hook["phase"]), (&"deny".into(), &"post_inference".into()), "{route:?}");
        assert_eq!(came.refusal.unwrap().kind, ErrorKind::Denied, "{route:?}");
    }
}

#[tokio::test]
async fn an_answer_to_a_segment_that_names_something_else_is_refused() {
    let other = |_: &Input| {
        let permission = Some(Permission::Modify);
        Ok(Some(Output { permission, output_thinking: Some("hm".into()), ..Output::default() }))
    };
    let world = World::new().hook_with(Event::PostInference, "", window(1, 0, 0), other);
    let (_, came, _) = stream(world, Route::ChatCompletions, &[text("a")]).await;
    assert_eq!(came.refusal.unwrap().kind, ErrorKind::ModifyUnsupported);
}

#[tokio::test]
async fn one_that_only_looks_on_sees_the_whole_and_decides_nothing() {
    for &route in ROUTES {
        let define = |hook| HookDefinition { stream: Some(Stream::new(StreamMode::Observe)), ..hook };
        let world = World::new().hook_with(Event::PostInference, "", define, |_| Ok(Some(Output::block("no"))));
        let says = [text("Hel"), text("lo.")];
        let (exchange, came, gathered) = stream(world, route, &says).await;
        assert_eq!(came.text(), frames(route, &says).concat(), "{route:?}");
        let first = frames(route, &says).iter().position(|frame| frame.contains("Hel")).unwrap();
        assert!(came.after[first] > 0 && gathered.over, "{route:?}: {:?}", came.after);
        exchange.settle().await;
        assert_eq!(texts(&exchange), ["Hello."], "{route:?}");
    }
}

#[tokio::test]
async fn the_strictest_hook_decides_and_the_others_see_what_it_sees() {
    let world = World::new()
        .hook_with(Event::PostInference, "", window(1, 0, 0), |_| Ok(None))
        .hook(Event::PostInference, |_| None);
    let (exchange, came, _) = stream(world, Route::ChatCompletions, &[text("Hel"), text("lo.")]).await;
    assert_eq!(texts(&exchange), ["Hello.", "Hello."]);
    assert_eq!(came.after.iter().rev().nth(1), Some(&0));
}
