//! A response body: what is not rewritten keeps its bytes, and what is rewritten is read again as it was asked for.
//!
//! The first byte is the route, `0` to `5` in the order of the table; the rest is the body.

#![no_main]

use bytes::Bytes;
use gatehook_events::ModelOutput;
use gatehook_inference::{Response, Route};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    let route = Route::ALL[usize::from(first.wrapping_sub(b'0')) % Route::ALL.len()];
    let body = Bytes::copy_from_slice(body);
    let Ok(response) = Response::read(route, body.clone()) else { return };
    let shown: Vec<ModelOutput> = response.choices().iter().map(|choice| choice.output.clone()).collect();
    assert_eq!(response.rewrite(&[]).as_ref(), Ok(&body), "rewritten by nothing");
    assert_eq!(response.rewrite(&shown).as_ref(), Ok(&body), "rewritten as shown");
    one_text(&response, &shown);
    no_calls(&response, &shown);
});

/// The first text becomes another one, which is all that a reader of the result finds changed.
fn one_text(response: &Response, shown: &[ModelOutput]) {
    let mut outputs = shown.to_vec();
    let Some(output) = outputs.iter_mut().find(|output| output.text.is_some()) else { return };
    output.text = Some("x".into());
    check(response, &outputs);
}

/// All calls go; what has none is shown without a list of them.
fn no_calls(response: &Response, shown: &[ModelOutput]) {
    let mut outputs = shown.to_vec();
    outputs.iter_mut().for_each(|output| output.tool_calls = output.tool_calls.take().map(|_| [].into()));
    check(response, &outputs);
}

fn check(response: &Response, outputs: &[ModelOutput]) {
    let Ok(sent) = response.rewrite(outputs) else { return };
    let again = Response::read(response.route(), sent.clone())
        .unwrap_or_else(|error| panic!("{error}, in {}", sent.escape_ascii()));
    let seen: Vec<ModelOutput> = again.choices().iter().map(|choice| choice.output.clone()).collect();
    let asked = outputs
        .iter()
        .cloned()
        .map(|output| ModelOutput { tool_calls: output.tool_calls.filter(|calls| !calls.is_empty()), ..output });
    assert_eq!(seen, asked.collect::<Vec<_>>(), "in {}", sent.escape_ascii());
}
