//! What foreign hooks answer, and payloads of foreign contracts: read, or refused, and written again.
//!
//! The first byte is the event's number, the second the exit code, `0` and so on; the rest is the text.

#![no_main]

use gatehook_engine::text::plain;
use gatehook_events::dialect::{HookName, Occasion, Printed, Said};
use gatehook_events::{Dialect, Event, Profile};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let [event, code, text @ ..] = data else { return };
    let Some(event) = Event::all().nth(usize::from(*event) % (Event::COUNT - 1)) else { return };
    let exit_code = i32::from(code.wrapping_sub(b'0')) - 1;
    for dialect in gatehook_dialects::all() {
        let said = dialect.read_reply(event, &Printed { stdout: text, stderr: "", exit_code });
        match &said {
            Said::Failed(_, cause) if exit_code == 0 => {
                assert_eq!(&plain(cause), cause, "sends more than text to a terminal");
            }
            Said::Output(output) if dialect.profile() == Profile::Ollm => {
                assert!(exit_code == 0 || output.is_blocked(), "a hook that failed let something pass");
            }
            _ => {}
        }
        cuts(text, |part| match dialect.read_reply(event, &Printed { stdout: part, stderr: "", exit_code }) {
            Said::Failed(..) | Said::Block(_) => false,
            Said::Output(output) => !output.is_blocked(),
            Said::Nothing | Said::Text(_) => true,
        });
        if let Ok(payload) = serde_json::from_slice::<Value>(text) {
            payloads(&*dialect, event, payload);
        }
    }
});

/// No part of an object that has lost its end lets anything pass, whatever the whole says.
fn cuts(text: &[u8], passes: impl Fn(&[u8]) -> bool) {
    let text = text.trim_ascii();
    if text.first() == Some(&b'{') && serde_json::from_slice::<Value>(text).is_ok() {
        for len in [1, text.len() / 3, text.len() / 2, text.len() - 1] {
            let part = &text[..len];
            assert!(part.is_empty() || !passes(part), "{:?} lets something pass", String::from_utf8_lossy(part));
        }
    }
}

/// What was written can be read, and is written again as it was.
fn payloads(dialect: &dyn Dialect, event: Event, payload: Value) {
    let Ok((event, mut input)) = dialect.read_payload(Some(event), payload) else { return };
    // What is always there.
    for known in [&mut input.session_id, &mut input.cwd, &mut input.timestamp] {
        known.get_or_insert_with(|| "2026-01-16T10:05:30Z".into());
    }
    let hook = Some(HookName { name: "h", version: "" });
    let Ok(line) = dialect.payload(&Occasion { event, input: &input, hook }) else { return };
    let written: Value = serde_json::from_slice(&line).expect("a payload is JSON");
    assert!(written.is_object() && !line.contains(&b'\n'), "a payload is one line of one object");
    let (_, input) = dialect.read_payload(Some(event), written.clone()).expect("what was written can be read");
    let again = dialect.payload(&Occasion { event, input: &input, hook }).expect("it was written before");
    let again: Value = serde_json::from_slice(&again).expect("a payload is JSON");
    assert_eq!(again, written, "{:?} {event:?}", dialect.profile());
}
