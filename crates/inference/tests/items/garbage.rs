//! Streams that no server sends, and decisions in any order: nothing panics, and what leaves can be read.

use bytes::Bytes;
use gatehook_inference::{Block, CallId, Ending, ErrorKind, Fate, Fault, Relay, Route, TrackId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use serde_json::json;

use crate::{items, left, note, reads, streams};

/// What is done to a stream: events are dropped, doubled, exchanged and bent.
#[derive(Debug, Clone)]
enum Harm {
    Drop(Index),
    Double(Index, Index),
    Swap(Index, Index),
    /// A string of an event is exchanged for one of another.
    Bend(Index, Index, Index),
    Retype(Index, Index),
}

fn any_harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        any::<Index>().prop_map(Harm::Drop),
        any::<(Index, Index)>().prop_map(|(one, two)| Harm::Double(one, two)),
        any::<(Index, Index)>().prop_map(|(one, two)| Harm::Swap(one, two)),
        any::<(Index, Index, Index)>().prop_map(|(one, two, which)| Harm::Bend(one, two, which)),
        any::<(Index, Index)>().prop_map(|(one, two)| Harm::Retype(one, two)),
    ]
}

const WORDS: &[&str] =
    &["null", "0", "9", "\"\"", "\"x\"", "[]", "{}", "[{}]", "true", "\"function_call\"", "\"text\""];

fn harmed(body: &str, harms: &[Harm]) -> String {
    let mut events: Vec<String> = body.split_inclusive("\n\n").map(str::to_owned).collect();
    for harm in harms {
        let count = events.len();
        if count == 0 {
            break;
        }
        match harm {
            Harm::Drop(at) => drop(events.remove(at.index(count))),
            Harm::Double(from, to) => events.insert(to.index(count), events[from.index(count)].clone()),
            Harm::Swap(one, two) => events.swap(one.index(count), two.index(count)),
            Harm::Bend(one, two, which) => {
                let values = |event: &str| event.match_indices(':').map(|(at, _)| at + 1).collect::<Vec<_>>();
                let event = &events[one.index(count)];
                let places = values(event);
                let place = places[two.index(places.len())];
                let length = event[place..].find([',', '}']).unwrap_or(0);
                let bent =
                    format!("{}{}{}", &event[..place], WORDS[which.index(WORDS.len())], &event[place + length..]);
                events[one.index(count)] = bent;
            }
            Harm::Retype(one, two) => {
                let head = |event: &str| event.lines().next().unwrap_or_default().to_owned();
                let (own, other) = (head(&events[one.index(count)]), head(&events[two.index(count)]));
                events[one.index(count)] = events[one.index(count)].replace(&own, &other);
            }
        }
    }
    events.concat()
}

/// All that leaves of a stream, let go as it comes. Calls are kept as wholes: kept early, they would leave as they come.
fn pass(route: Route, reads: &[Bytes]) -> Result<String, Fault> {
    let mut relay = Relay::new(route);
    let mut out = String::new();
    let mut let_go = |relay: &mut Relay| {
        (0..relay.tracks().len()).for_each(|id| relay.allow(TrackId(id), usize::MAX));
        for id in 0..relay.calls().len() {
            if relay.calls()[id].complete {
                relay.decide(CallId(id), Fate::Keep).unwrap();
            }
        }
        out += &left(relay);
    };
    for read in reads {
        relay.push(read.clone())?;
        let_go(&mut relay);
    }
    relay.finish()?;
    let_go(&mut relay);
    Ok(out)
}

#[test]
fn what_has_left_is_left_alone_when_it_comes_again() {
    for stream in streams() {
        let once = pass(stream.route, std::slice::from_ref(&stream.body)).unwrap();
        let twice = pass(stream.route, &[Bytes::from(once.clone())]).unwrap();
        assert_eq!(twice, once, "{}", stream.file);
    }
}

#[test]
fn an_item_that_the_end_names_otherwise_keeps_the_name_with_which_it_began() {
    let message =
        |id: &str| json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": []});
    let done = |id: &str| json!({"type": "response.output_item.done", "item": message(id)});
    let output = json!([{"type": "reasoning", "id": "rs_1", "summary": []}, message("msg_b")]);
    let stream = items(&[done("msg_1"), done("msg_2")], output);
    let once = pass(stream.route, std::slice::from_ref(&stream.body)).unwrap();
    assert!(!once.contains("msg_b"), "{once}");
    assert_eq!(pass(stream.route, &[Bytes::from(once.clone())]).unwrap(), once);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_leaves_the_same_however_it_is_split(
        stream in proptest::sample::select(streams()),
        harms in vec(any_harm(), 0..4),
        cuts in vec(any::<Index>(), 0..20),
    ) {
        let body = Bytes::from(harmed(std::str::from_utf8(&stream.body).unwrap(), &harms));
        let whole = pass(stream.route, std::slice::from_ref(&body));
        let split = pass(stream.route, &reads(&body, &cuts));
        prop_assert_eq!(whole.is_ok(), split.is_ok(), "{}: {:?}, {:?}", stream.file, whole, split);
        let (Ok(whole), Ok(split)) = (whole, split) else { return Ok(()) };
        prop_assert!(whole == split, "{}: {:?}", stream.file, body);
    }

    #[test]
    fn no_order_of_events_and_decisions_breaks_what_a_client_gets(
        stream in proptest::sample::select(streams()),
        harms in vec(any_harm(), 0..6),
        steps in vec(any::<(u8, Index, Index)>(), 1..30),
        ends: bool,
    ) {
        let body = harmed(std::str::from_utf8(&stream.body).unwrap(), &harms);
        let mut relay = Relay::new(stream.route);
        let (mut at, size) = (0, body.len() / steps.len() + 1);
        let mut out = String::new();
        for (step, one, two) in &steps {
            let end = (at + size).min(body.len());
            if relay.push(Bytes::copy_from_slice(&body.as_bytes()[at..end])).is_err() {
                break;
            }
            at = end;
            decide(&mut relay, *step, *one, *two);
            out += &left(&mut relay);
        }
        let _ = relay.finish();
        out += &left(&mut relay);
        let end = match ends {
            true => relay.block(&Block { message: "No.", hook: &note(), ending: Ending::Refusal }),
            false => relay.fail(ErrorKind::BadUpstream, "", "r"),
        };
        out += std::str::from_utf8(&end).unwrap();
        prop_assert_eq!(relay.take(), None);
        let again = pass(stream.route, &[Bytes::from(out.clone())]);
        prop_assert!(again.is_ok(), "{}: {:?}\n{}", stream.file, again, out);
    }
}

fn decide(relay: &mut Relay, step: u8, one: Index, two: Index) {
    if !relay.tracks().is_empty() {
        let id = TrackId(one.index(relay.tracks().len()));
        let track = &relay.tracks()[id.0];
        let places: Vec<usize> =
            (0..=track.text.len()).filter(|at| track.text.is_char_boundary(*at)).map(|at| at + track.base).collect();
        let (from, to) = (places[one.index(places.len())], places[two.index(places.len())]);
        match step % 4 {
            0 => relay.allow(id, to),
            1 => drop(relay.replace(id, from.min(to)..from.max(to), ["", "x", "longer text"][usize::from(step) % 3])),
            2 => relay.allow(id, usize::MAX),
            _ => drop(relay.add_track(0, gatehook_inference::TrackKind::Text)),
        }
    }
    if !relay.calls().is_empty() {
        let id = CallId(two.index(relay.calls().len()));
        let mut call = relay.calls()[id.0].call.clone();
        call.function.arguments = "{\"a\":1}".into();
        let fate = match step / 4 % 4 {
            0 => Fate::Keep,
            1 => Fate::Remove,
            2 => Fate::Rewrite(&call),
            _ => return,
        };
        let _ = relay.decide(id, fate);
    }
}
