//! The payload of every event in every contract, made from the sample inputs.

#![allow(clippy::unwrap_used, reason = "what the tests call may stop them too")]

use gatehook_events::dialect::{HookName, Occasion};
use gatehook_events::sample::sample;
use gatehook_events::{Dialect, Event, Input};
use serde_json::Value;

fn payload(dialect: &dyn Dialect, event: Event) -> Value {
    let mut input = Input::read(sample(event)).unwrap();
    // What the engine fills in where a host does not.
    input.cwd = Some("/home/user/project".into());
    let hook = Some(HookName { name: "guard", version: "" }).filter(|_| dialect.names_hook());
    serde_json::from_slice(&dialect.payload(&Occasion { event, input: &input, hook }).unwrap()).unwrap()
}

#[test]
fn every_event_has_its_documented_payload() {
    for dialect in gatehook_dialects::all() {
        for event in Event::all() {
            let Some(name) = dialect.event_name(event) else { continue };
            insta::with_settings!({ snapshot_path => "payloads", prepend_module_to_snapshot => false }, {
                insta::assert_json_snapshot!(format!("{}__{name}", dialect.profile().name()), payload(&*dialect, event));
            });
        }
    }
}
