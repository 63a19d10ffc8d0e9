//! Hooks that want a person asked, where there is one.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use gatehook_engine::events::{Event, Input, Output, Permission, Verdict};
use gatehook_guard::{Permits, Permitting};
use gatehook_inference::{ErrorKind, Route};
use serde_json::json;

use crate::gate::{gate, send};
use crate::streams::{ROUTES, frames, gather, text};
use crate::world::{Exchange, World};

/// Says this to everything, and remembers why it was asked.
struct Person(bool, Mutex<Vec<(Event, String)>>);

impl Permits for Person {
    fn permits<'a>(&'a self, event: Event, _: &'a Input, verdict: &'a Verdict) -> Permitting<'a> {
        self.1.lock().unwrap().push((event, verdict.decision_reason.clone()));
        Box::pin(async { self.0 })
    }
}

fn exchange(event: Event, says: Permission, person: bool) -> (Exchange, Arc<Person>) {
    let answer = Output { permission: Some(says), reason: Some("it names somebody".into()), ..Output::default() };
    let mut exchange = Exchange::from(World::new().hook(event, move |_| Some(answer.clone())));
    let person = Arc::new(Person(person, Mutex::default()));
    exchange.guard = exchange.guard.asking(person.clone());
    (exchange, person)
}

fn body(route: Route) -> serde_json::Value {
    let mut body = crate::world::request(route);
    body["stream"] = json!(true);
    body
}

#[tokio::test]
async fn what_the_person_permits_goes_on() {
    for &route in ROUTES {
        let (exchange, person) = exchange(Event::PreInference, Permission::Ask, true);
        assert_eq!(exchange.ask(route, &body(route)).await.unwrap().body, body(route).to_string(), "{route:?}");
        assert_eq!(*person.1.lock().unwrap(), [(Event::PreInference, "it names somebody".to_owned())], "{route:?}");
    }
}

#[tokio::test]
async fn what_the_person_does_not_permit_is_denied() {
    for &route in ROUTES {
        let (exchange, _) = exchange(Event::PreInference, Permission::Ask, false);
        let refusal = exchange.ask(route, &body(route)).await.unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::Denied, "{route:?}");
        assert!(refusal.message.ends_with("it names somebody"), "{route:?}: {}", refusal.message);
    }
}

#[tokio::test]
async fn a_stream_waits_for_the_person() {
    for &route in ROUTES {
        for permits in [true, false] {
            let (exchange, person) = exchange(Event::PostInference, Permission::Ask, permits);
            let mut gate = gate(&exchange, route).await.unwrap();
            let came = send(&mut gate, frames(route, &[text("Hello.")]).into_iter().map(Bytes::from)).await;
            let expected = if permits { "Hello." } else { "" };
            assert_eq!(gather(route, &came.bytes).text, expected, "{route:?} {permits}");
            assert_eq!(came.refusal.map(|no| no.kind), (!permits).then_some(ErrorKind::Denied), "{route:?}");
            assert_eq!(person.1.lock().unwrap().len(), 1, "{route:?}");
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_about_a_denial() {
    let (exchange, person) = exchange(Event::PreInference, Permission::Deny, true);
    let refusal = exchange.ask(Route::Chat, &body(Route::Chat)).await.unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Denied);
    assert!(person.1.lock().unwrap().is_empty());
}
