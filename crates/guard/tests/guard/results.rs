//! Tool results in a request.

use gatehook_engine::HandlerError;
use gatehook_engine::events::output::HookSpecificOutput;
use gatehook_engine::events::{Event, FailureKind, Input, Output};
use gatehook_inference::Route;
use serde_json::{Value, json};

use crate::world::{Exchange, World};

fn shortened(input: &Input) -> Option<Output> {
    let text = input.tool_response.as_deref()?.as_str()?;
    let updated_tool_response = text.contains("long").then(|| Value::String("short".into()));
    Some(Output::specific(HookSpecificOutput { updated_tool_response, ..HookSpecificOutput::default() }))
}

/// A conversation with these results, on each route that has any.
fn requests(results: &[&str]) -> Vec<(Route, Value)> {
    let each = |make: &dyn Fn(String, &str) -> Vec<Value>| -> Vec<Value> {
        results.iter().enumerate().flat_map(|(number, text)| make(format!("c{number}"), text)).collect()
    };
    let openai = each(&|id, text| {
        let call = json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
        vec![
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": text}),
        ]
    });
    let messages = each(&|id, text| {
        vec![
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "read", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}),
        ]
    });
    let responses = each(&|id, text| {
        vec![
            json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": id, "output": text}),
        ]
    });
    let user = json!({"role": "user", "content": "go"});
    let with = |mut list: Vec<Value>| {
        list.insert(0, user.clone());
        list
    };
    vec![
        (Route::ChatCompletions, json!({"model": "m", "messages": with(openai)})),
        (Route::Messages, json!({"model": "m", "max_tokens": 9, "messages": with(messages)})),
        (Route::Responses, json!({"model": "m", "input": with(responses)})),
    ]
}

#[tokio::test]
async fn a_result_is_shown_with_its_tool_and_rewritten_in_its_place() {
    for (route, body) in requests(&["fine", "long long"]) {
        let exchange = Exchange::from(World::new().hook(Event::ToolResponseTransform, shortened));
        let admitted = exchange.ask(route, &body).await.unwrap();
        assert_eq!(admitted.body, body.to_string().replace("long long", "short"), "{route:?}");
        let seen = exchange.seen.inputs(Event::ToolResponseTransform);
        let ids: Vec<_> = seen.iter().map(|input| input.tool_use_id.as_deref().unwrap()).collect();
        assert_eq!(ids, ["c0", "c1"], "{route:?}");
        assert!(seen.iter().all(|input| input.tool_name.as_deref() == Some("read")), "{route:?}");
        assert!(seen.iter().all(|input| input.plane.as_deref() == Some("wire")), "{route:?}");
    }
}

#[tokio::test]
async fn hooks_run_on_new_results_only_and_old_ones_keep_their_rewrite() {
    let exchange = Exchange::from(World::new().hook(Event::ToolResponseTransform, shortened));
    for (turn, results) in
        [&["a long one"][..], &["a long one", "b"], &["a long one", "b", "c long"]].iter().enumerate()
    {
        let (route, body) = requests(results).remove(0);
        let admitted = exchange.ask(route, &body).await.unwrap();
        let sent = String::from_utf8(admitted.body.to_vec()).unwrap();
        assert!(!sent.contains("long") && sent.contains("short"), "{sent}");
        assert_eq!(exchange.seen.inputs(Event::ToolResponseTransform).len(), turn + 1);
    }
}

#[tokio::test]
async fn another_session_is_judged_anew() {
    let exchange = Exchange::from(World::new().hook(Event::ToolResponseTransform, shortened));
    let (route, mut body) = requests(&["a"]).remove(0);
    exchange.ask(route, &body).await.unwrap();
    body["messages"][0]["content"] = "something else".into();
    exchange.ask(route, &body).await.unwrap();
    assert_eq!(exchange.seen.inputs(Event::ToolResponseTransform).len(), 2);
}

#[tokio::test]
async fn a_hook_that_failed_is_asked_again() {
    let fails = |_: &Input| Err(HandlerError::new(FailureKind::HandlerError, "it is broken"));
    let exchange = Exchange::from(World::new().hook_with(Event::ToolResponseTransform, "", |hook| hook, fails));
    let (route, body) = requests(&["a"]).remove(0);
    for turn in 1..=2 {
        assert_eq!(exchange.ask(route, &body).await.unwrap().body, body.to_string());
        assert_eq!(exchange.seen.inputs(Event::ToolResponseTransform).len(), turn);
    }
}

#[tokio::test]
async fn hooks_before_the_call_see_the_transformed_results() {
    for (route, body) in requests(&["long"]) {
        let world = World::new().hook(Event::PreInference, |_| None).hook(Event::ToolResponseTransform, shortened);
        let exchange = Exchange::from(world);
        exchange.ask(route, &body).await.unwrap();
        let seen = exchange.seen.inputs(Event::PreInference).remove(0);
        let last = seen.messages.unwrap().last().unwrap().clone();
        assert_eq!(last.content.as_deref(), Some("short"), "{route:?}");
    }
}
