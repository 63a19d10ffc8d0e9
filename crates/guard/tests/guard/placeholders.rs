//! Values that a hook takes out of the request are put back into the answer, after all hooks.

use gatehook_engine::events::{Event, Input, Message, Output, Permission};
use gatehook_inference::Route;
use serde_json::{Value, json};

use crate::world::{Exchange, World, request};

/// Puts `<EMAIL_1>` in the place of `jane@x.org`.
fn takes_out(input: &Input) -> Option<Output> {
    let messages = input.messages.as_deref()?.iter().map(|message| Message {
        content: message.content.as_deref().map(|text| text.replace("jane@x.org", "<EMAIL_1>").into()),
        ..message.clone()
    });
    Some(Output {
        permission: Some(Permission::Modify),
        messages: Some(messages.collect()),
        placeholders: vec![("<EMAIL_1>".into(), "\"jane\"@x.org".into())],
        ..Output::default()
    })
}

fn asking(route: Route) -> Value {
    let text = request(route).to_string().replace("\"hi\"", "\"I am jane@x.org\"");
    serde_json::from_str(&text).unwrap()
}

/// Answers of every route that repeat what was asked, as text, thinking and arguments.
fn answers() -> Vec<(Route, Value)> {
    let arguments = r#"{"to":"<EMAIL_1>","cc":["\u003cEMAIL_1\u003e"]}"#;
    let call = json!({"id": "c", "type": "function", "function": {"name": "mail", "arguments": arguments}});
    let native = json!({"function": {"name": "mail", "arguments": {"to": "<EMAIL_1>", "cc": ["<EMAIL_1>"]}}});
    let said = "to <EMAIL_1>, not <EMAIL_2>";
    vec![
        (
            Route::ChatCompletions,
            json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message":
                {"role": "assistant", "content": said, "reasoning_content": said, "tool_calls": [call]}}]}),
        ),
        (Route::Completions, json!({"choices": [{"index": 0, "text": said, "finish_reason": "stop"}]})),
        (
            Route::Chat,
            json!({"model": "m", "message": {"role": "assistant", "content": said, "thinking": said, "tool_calls": [native]},
                   "done": true}),
        ),
        (Route::Generate, json!({"model": "m", "response": said, "thinking": said, "done": true})),
        (
            Route::Messages,
            json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
                {"type": "text", "text": said},
                {"type": "tool_use", "id": "c", "name": "mail", "input": {"to": "<EMAIL_1>", "cc": ["<EMAIL_1>"]}}]}),
        ),
        (
            Route::Responses,
            json!({"id": "r", "object": "response", "status": "completed", "output": [
                {"type": "message", "id": "m", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": said, "annotations": []}]},
                {"type": "function_call", "id": "f", "call_id": "c", "name": "mail", "arguments": arguments}]}),
        ),
    ]
}

/// What the answer says of text, and of arguments.
fn value_in(answer: &str) -> (usize, usize) {
    let plain = answer.replace("\\\\\\\"", "'").replace("\\\"", "'");
    (plain.matches("to 'jane'@x.org, not <EMAIL_2>").count(), plain.matches("'jane'@x.org").count())
}

#[tokio::test]
async fn values_are_put_back_on_every_route_though_no_hook_looks_at_answers() {
    for (route, answer) in answers() {
        let exchange = Exchange::from(World::new().hook(Event::PreInference, takes_out));
        let call = exchange.call(route);
        assert_eq!(exchange.guard.looks_after(call.path), None);
        let admitted = exchange.ask(route, &asking(route)).await.unwrap();
        assert!(admitted.body.windows(9).any(|part| part == b"<EMAIL_1>"), "{route:?}");
        assert!(admitted.looks_after, "{route:?}");
        let after = exchange.guard.after(&call, &admitted, answer.to_string().into()).await.unwrap();
        let after = String::from_utf8(after.to_vec()).unwrap();
        assert!(serde_json::from_str::<Value>(&after).is_ok(), "{route:?} {after}");
        assert!(!after.contains("EMAIL_1") && value_in(&after).0 >= 1, "{route:?} {after}");
        let wanted = answer.to_string().matches("EMAIL_1").count();
        assert_eq!(value_in(&after).1, wanted, "{route:?} {after}");
    }
}

#[tokio::test]
async fn hooks_after_the_call_see_placeholders_and_the_client_sees_values() {
    for (route, answer) in answers() {
        let world = World::new().hook(Event::PreInference, takes_out).hook(Event::PostInference, |input| {
            let text = input.output_text.as_deref().unwrap_or_default().replace("to ", "for ");
            Some(Output { output_text: Some(text.into()), ..Output::default() })
        });
        let exchange = Exchange::from(world);
        let admitted = exchange.ask(route, &asking(route)).await.unwrap();
        let after = exchange.guard.after(&exchange.call(route), &admitted, answer.to_string().into()).await.unwrap();
        let after = String::from_utf8(after.to_vec()).unwrap();
        for input in exchange.seen.inputs(Event::PostInference) {
            assert_eq!(input.output_text.as_deref(), Some("to <EMAIL_1>, not <EMAIL_2>"), "{route:?}");
        }
        assert!(after.contains("for \\\"jane\\\"@x.org, not <EMAIL_2>"), "{route:?} {after}");
    }
}

#[tokio::test]
async fn signed_thinking_stays_as_it_is_and_the_text_beside_it_does_not() {
    let exchange = Exchange::from(World::new().hook(Event::PreInference, takes_out));
    let admitted = exchange.ask(Route::Messages, &asking(Route::Messages)).await.unwrap();
    let body = json!({"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [
        {"type": "thinking", "thinking": "is <EMAIL_1> right?", "signature": "s"},
        {"type": "text", "text": "<EMAIL_1>"}]});
    let after =
        exchange.guard.after(&exchange.call(Route::Messages), &admitted, body.to_string().into()).await.unwrap();
    let after: Value = serde_json::from_slice(&after).unwrap();
    assert_eq!(after["content"][0], body["content"][0]);
    assert_eq!(after["content"][1]["text"], "\"jane\"@x.org");
}

#[tokio::test]
async fn an_answer_without_placeholders_keeps_its_bytes() {
    let exchange = Exchange::from(World::new().hook(Event::PreInference, takes_out));
    let admitted = exchange.ask(Route::ChatCompletions, &asking(Route::ChatCompletions)).await.unwrap();
    for body in [r#"{ "choices": [{"index":0,"message":{"role":"assistant","content":"\u0068i"}}]}"#, "no JSON at all"]
    {
        let after = exchange.guard.after(&exchange.call(Route::ChatCompletions), &admitted, body.into()).await.unwrap();
        assert_eq!(after, body);
    }
}
