//! Streams that no server sends: nothing panics, and what leaves holds nothing that was held.

use bytes::Bytes;
use gatehook_inference::{Block, CallId, Ending, ErrorKind, Fate, Relay, TrackId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::{drain, note, streams};

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_and_decisions_makes_a_relay_panic(
        stream in proptest::sample::select(streams()),
        harms in vec(any_harm(), 0..6),
        steps in vec(any::<(u8, Index, Index)>(), 1..30),
        ends: bool,
    ) {
        let body = harmed(std::str::from_utf8(&stream.body).unwrap(), &harms);
        let mut relay = Relay::new(stream.route);
        let (mut at, size) = (0, body.len() / steps.len() + 1);
        for (step, one, two) in &steps {
            let end = (at + size).min(body.len());
            if relay.push(Bytes::copy_from_slice(&body.as_bytes()[at..end])).is_err() {
                break;
            }
            at = end;
            decide(&mut relay, *step, *one, *two);
            drain(&mut relay);
        }
        let _ = relay.finish();
        drain(&mut relay);
        if ends {
            relay.block(&Block { message: "No.", hook: &note(), ending: Ending::Refusal });
        } else {
            relay.fail(ErrorKind::BadUpstream, "", "r");
        }
        drain(&mut relay);
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
