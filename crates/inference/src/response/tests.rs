use serde_json::json;

use super::*;

fn response(route: Route, body: &Value) -> Response {
    Response::read(route, body.to_string().into()).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn text(text: &str) -> ModelOutput {
    ModelOutput { text: Some(text.into()), ..ModelOutput::default() }
}

fn thinking(text: &str) -> ModelOutput {
    ModelOutput { thinking: Some(text.into()), ..ModelOutput::default() }
}

fn calls(calls: &Value) -> ModelOutput {
    let calls: Vec<ToolCall> = serde_json::from_value(calls.clone()).unwrap();
    ModelOutput { tool_calls: Some(calls.into()), ..ModelOutput::default() }
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
}

fn rewritten(response: &Response, output: ModelOutput) -> Result<Value, String> {
    let bytes = response.rewrite(&[output]).map_err(|error| error.reason)?;
    Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}")))
}

fn chat(message: &Value, finish_reason: &str) -> Value {
    json!({"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})
}

#[test]
fn what_repeats_a_changed_text_is_dropped() {
    let native = response(
        Route::Generate,
        &json!({"response": "secret", "context": [1, 2], "logprobs": [{"token": "secret"}], "done_reason": "stop"}),
    );
    assert_eq!(rewritten(&native, text("x")).unwrap(), json!({"response": "x", "done_reason": "stop"}));
    let openai = response(
        Route::ChatCompletions,
        &json!({"choices": [{"message": {"content": "secret", "annotations": [{"title": "secret"}]},
                             "logprobs": {"content": [{"token": "secret"}]}, "finish_reason": "stop"}],
                "__verbose": {"content": "secret"}}),
    );
    assert_eq!(
        rewritten(&openai, text("x")).unwrap(),
        json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]})
    );
    let responses = response(
        Route::Responses,
        &json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "secret",
                "annotations": [{"title": "secret"}], "logprobs": [{"token": "secret"}]}]}], "output_text": "secret"}),
    );
    assert_eq!(
        rewritten(&responses, text("x")).unwrap(),
        json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}]}], "output_text": "x"})
    );
    let anthropic = response(
        Route::Messages,
        &json!({"content": [{"type": "text", "text": "secret", "citations": [{"cited_text": "secret"}]}]}),
    );
    assert_eq!(rewritten(&anthropic, text("x")).unwrap(), json!({"content": [{"type": "text", "text": "x"}]}));
}

#[test]
fn a_text_in_several_blocks_is_one_text() {
    let block = |text: &str| json!({"type": "text", "text": text});
    let body = json!({"content": [block("one "), {"type": "tool_use", "id": "t", "name": "f", "input": {}}, block("two "), block("three")],
                      "stop_reason": "tool_use"});
    let response = response(Route::Messages, &body);
    assert_eq!(response.choices()[0].output.text.as_deref(), Some("one two three"));
    let texts = |new: &str| {
        let out = rewritten(&response, text(new)).unwrap();
        let blocks = out["content"].as_array().unwrap().clone();
        blocks.iter().filter_map(|block| block.get("text")?.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(texts("one TWO three"), ["one ", "TWO ", "three"]);
    assert_eq!(texts("other"), ["other"]);
    assert_eq!(texts("one three"), ["one ", "three"]);
    assert_eq!(texts("one two three four"), ["one ", "two ", "three four"]);
    assert!(texts("").is_empty());
}

#[test]
fn calls_that_are_taken_out_leave_no_gap() {
    let body = chat(
        &json!({"role": "assistant", "content": null, "tool_calls": [
            {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"index": 1, "id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        "tool_calls",
    );
    let response = response(Route::ChatCompletions, &body);
    let out = rewritten(&response, calls(&json!([call("b", "{\"x\":1}")]))).unwrap();
    assert_eq!(
        out["choices"][0]["message"]["tool_calls"],
        json!([{"index": 0, "id": "b", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}])
    );
    assert_eq!(out["choices"][0]["finish_reason"], "tool_calls");
    let out = rewritten(&response, calls(&json!([]))).unwrap();
    assert_eq!(out, chat(&json!({"role": "assistant", "content": null}), "stop"));
}

#[test]
fn calls_that_come_back_without_their_unnamed_fields_are_unchanged() {
    let body = json!({"message": {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"index": 0, "name": "f", "arguments": {"a": 1}}}]}, "logprobs": [{"token": "x"}], "done": true});
    let response = response(Route::Chat, &body);
    let bare = json!([{"type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]);
    assert_eq!(rewritten(&response, calls(&bare)).unwrap(), body);
}

#[test]
fn a_payload_is_filled_from_request_and_answer() {
    let mut input = Input::default();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": false});
    crate::Request::read(Route::Chat, body.to_string().into()).unwrap().view().fill(&mut input);
    let answer = json!({"message": {"content": "a", "thinking": "t"}, "done_reason": "stop"});
    response(Route::Chat, &answer).choices()[0].fill(&mut input);
    assert_eq!(
        serde_json::to_value(&input).unwrap(),
        json!({"model_id": "m", "messages": [{"role": "user", "content": "q"}], "stream": false,
               "output_text": "a", "output_thinking": "t", "done_reason": "stop"})
    );
}

#[test]
fn without_calls_the_stop_reason_is_that_of_a_plain_answer() {
    let body =
        json!({"content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}], "stop_reason": "tool_use"});
    let anthropic = response(Route::Messages, &body);
    let out = rewritten(&anthropic, ModelOutput { text: Some("no".into()), ..calls(&json!([])) }).unwrap();
    assert_eq!(out, json!({"content": [{"type": "text", "text": "no"}], "stop_reason": "end_turn"}));
    let body = chat(&json!({"content": "", "function_call": {"name": "f", "arguments": "{}"}}), "function_call");
    let legacy = response(Route::ChatCompletions, &body);
    assert_eq!(rewritten(&legacy, calls(&json!([]))).unwrap(), chat(&json!({"content": ""}), "stop"));
}

#[test]
fn a_text_can_take_the_place_of_none() {
    let openai = response(Route::ChatCompletions, &chat(&json!({"role": "assistant", "content": null}), "stop"));
    assert_eq!(openai.choices()[0].output.text, None);
    assert_eq!(rewritten(&openai, text("x")).unwrap()["choices"][0]["message"]["content"], "x");
    let blocks = json!({"content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]});
    let anthropic = response(Route::Messages, &blocks);
    assert_eq!(rewritten(&anthropic, text("x")).unwrap()["content"][1], json!({"type": "text", "text": "x"}));
    let items = response(Route::Responses, &json!({"output": []}));
    assert_eq!(rewritten(&items, text("x")).unwrap()["output"][0]["content"][0]["text"], "x");
    assert!(rewritten(&anthropic, ModelOutput { thinking: Some("changed".into()), ..ModelOutput::default() }).is_err());
}

#[test]
fn signed_and_encrypted_reasoning_is_dropped_never_changed() {
    let cipher = "gAAAAABo".repeat(8);
    let anthropic = json!({"content": [
        {"type": "thinking", "thinking": "why", "signature": "sig"}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "a"}]});
    let openai = json!({"output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}], "encrypted_content": cipher},
        {"type": "message", "content": [{"type": "output_text", "text": "a"}]}]});
    for (route, body, key) in [(Route::Messages, anthropic, "content"), (Route::Responses, openai, "output")] {
        let response = response(route, &body);
        assert_eq!(response.choices()[0].output.thinking.as_deref(), Some("why"));
        assert!(rewritten(&response, thinking("other")).unwrap_err().contains("not rewritten"));
        assert_eq!(rewritten(&response, thinking("")).unwrap()[key].as_array().unwrap().len(), 1, "{body}");
    }
}

#[test]
fn reasoning_without_encryption_is_text() {
    let body = json!({"output": [{"type": "reasoning", "encrypted_content": "the plain thought",
                      "summary": [{"type": "summary_text", "text": "the plain thought"}]}]});
    let response = response(Route::Responses, &body);
    assert_eq!(response.choices()[0].output.thinking.as_deref(), Some("the plain thought"));
    assert_eq!(
        rewritten(&response, thinking("x")).unwrap(),
        json!({"output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]}]})
    );
    assert_eq!(rewritten(&response, thinking("")).unwrap(), json!({"output": []}));
}

#[test]
fn thinking_in_steps_is_seen_and_dropped_where_it_repeats() {
    let steps = json!([{"type": "reasoning.text", "text": "one "}, {"type": "reasoning.text", "text": "two"}]);
    let alone = response(Route::ChatCompletions, &chat(&json!({"content": "a", "reasoning_details": steps}), "stop"));
    assert_eq!(alone.choices()[0].output.thinking.as_deref(), Some("one two"));
    let out = rewritten(&alone, thinking("one x")).unwrap();
    assert_eq!(out["choices"][0]["message"]["reasoning_details"][1]["text"], "x");
    let both = json!({"content": "a", "reasoning": "one two", "reasoning_details": steps});
    let both = response(Route::ChatCompletions, &chat(&both, "stop"));
    assert_eq!(rewritten(&both, thinking("x")).unwrap(), chat(&json!({"content": "a", "reasoning": "x"}), "stop"));
}

#[test]
fn a_refusal_beside_the_text_is_part_of_it() {
    let body = chat(&json!({"content": null, "refusal": "I can't"}), "stop");
    let response = response(Route::ChatCompletions, &body);
    assert_eq!(response.choices()[0].output.text.as_deref(), Some("I can't"));
    assert_eq!(rewritten(&response, text("")).unwrap(), chat(&json!({"content": null, "refusal": null}), "stop"));
}

#[test]
fn calls_of_every_kind_are_shown_to_a_guard() {
    let body = json!({"output": [
        {"type": "local_shell_call", "id": "i", "call_id": "c", "action": {"command": ["rm"]}, "status": "completed"},
        {"type": "custom_tool_call", "call_id": "p", "name": "patch", "input": "***"}]});
    let response = response(Route::Responses, &body);
    let shown = response.choices()[0].output.tool_calls.clone().unwrap();
    assert_eq!((&*shown[0].kind, &*shown[0].function.name), ("local_shell_call", "local_shell"));
    assert!(shown[0].function.arguments.contains("\"rm\""));
    assert_eq!(&*shown[1].function.arguments, "***");
    let mut changed = shown.to_vec();
    changed[0].function.arguments = "{}".into();
    let output = ModelOutput { tool_calls: Some(changed.into()), ..ModelOutput::default() };
    assert!(rewritten(&response, output).is_err());
    let output = ModelOutput { tool_calls: Some(shown[1..].into()), ..ModelOutput::default() };
    assert_eq!(rewritten(&response, output).unwrap()["output"].as_array().unwrap().len(), 1);
}

#[test]
fn a_call_that_the_server_made_leaves_with_its_result() {
    let body = json!({"content": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}}], "stop_reason": "tool_use"});
    let response = response(Route::Messages, &body);
    let shown = response.choices()[0].output.tool_calls.clone().unwrap();
    let output = |calls: &[ToolCall]| ModelOutput { tool_calls: Some(calls.into()), ..ModelOutput::default() };
    let out = rewritten(&response, output(&shown[1..])).unwrap();
    assert_eq!(out["content"].as_array().unwrap().len(), 1);
    assert_eq!(out["stop_reason"], "tool_use");
    let out = rewritten(&response, output(&shown[..1])).unwrap();
    assert_eq!(out["stop_reason"], "end_turn");
}

#[test]
fn usage_is_shown_by_the_upstreams_names() {
    let native = response(Route::Chat, &json!({"message": {"content": "x"}, "prompt_eval_count": 3, "eval_count": 4}));
    assert_eq!(native.usage(), Some(&json!({"prompt_eval_count": 3, "eval_count": 4})));
    let openai = response(Route::Completions, &json!({"choices": [], "usage": {"total_tokens": 1}}));
    assert_eq!(openai.usage(), Some(&json!({"total_tokens": 1})));
}

#[test]
fn what_is_no_answer_of_the_route_is_refused() {
    for (route, body) in [
        (Route::Chat, r#"{"response":"x"}"#),
        (Route::ChatCompletions, r#"{"error":{}}"#),
        (Route::ChatCompletions, r#"{"choices":[{"message":{"content":7}}]}"#),
        (Route::ChatCompletions, r#"{"choices":[{"message":{"Content":"x"}}]}"#),
        (Route::Completions, r#"{"choices":{}}"#),
        (Route::Responses, r#"{"output":"x"}"#),
        (Route::Messages, r#"{"content":"x"}"#),
        (Route::Messages, r#"{"content":[{"type":"text","text":1}]}"#),
        (Route::Generate, r#"{"response":"a","response":"b"}"#),
        (Route::Generate, "[]"),
    ] {
        assert!(Response::read(route, body.as_bytes().to_vec().into()).is_err(), "{body}");
    }
}

#[test]
fn what_is_not_known_is_shown_whole_and_can_be_taken_out() {
    let request = json!({"type": "mcp_approval_request", "id": "a", "name": "drop", "arguments": "{}"});
    let block = json!({"type": "compaction_summary", "content": "words"});
    for (route, body, kept) in [
        (Route::Responses, json!({"output": [request]}), json!({"output": []})),
        (
            Route::Messages,
            json!({"content": [block], "stop_reason": "end_turn"}),
            json!({"content": [], "stop_reason": "end_turn"}),
        ),
    ] {
        let response = response(route, &body);
        let shown = response.choices()[0].output.tool_calls.clone().unwrap();
        assert!(
            shown[0].function.arguments.contains("drop") || shown[0].function.arguments.contains("words"),
            "{body}"
        );
        assert_eq!(rewritten(&response, calls(&json!([]))).unwrap(), kept, "{body}");
    }
}

#[test]
fn an_item_without_a_type_is_a_message() {
    let body = json!({"output": [{"role": "assistant", "content": [{"text": "words"}]}]});
    assert_eq!(response(Route::Responses, &body).choices()[0].output.text.as_deref(), Some("words"));
}

#[test]
fn a_text_beside_the_output_is_shown_where_it_says_something_else() {
    let body = |text: &str| json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}], "output_text": text});
    for (text_beside, shown) in [("a", "a"), ("", "a"), ("b", "ab")] {
        let response = response(Route::Responses, &body(text_beside));
        assert_eq!(response.choices()[0].output.text.as_deref(), Some(shown), "{text_beside:?}");
        let new = rewritten(&response, text("c")).unwrap().to_string();
        assert!(new.contains(r#""c""#) && !new.contains(r#""a""#) && !new.contains(r#""b""#), "{new}");
    }
}

#[test]
fn spoken_words_are_shown_and_go_with_their_sound() {
    let part = json!({"type": "output_audio", "transcript": "words", "data": "AAAA"});
    let response = response(Route::Responses, &json!({"output": [{"type": "message", "content": [part]}]}));
    assert_eq!(response.choices()[0].output.text.as_deref(), Some("words"));
    assert!(!rewritten(&response, text("")).unwrap().to_string().contains("AAAA"));
    assert!(rewritten(&response, text("other")).is_err());
}

#[test]
fn a_note_stands_beside_an_answer_whose_other_bytes_stay() {
    let body = r#"{ "choices": [ {"message":{"content":"hi"},"finish_reason":"stop"} ] , "model":"m" }"#;
    let response = Response::read(Route::ChatCompletions, body.into()).unwrap();
    let note = HookNote { hook_name: Some("no_shell".into()), ..HookNote::default() };
    let noted = response.rewrite_noted(&[], Some(&note)).unwrap();
    let note = r#","hook":{"hook_name":"no_shell","permission":"deny"}"#;
    assert_eq!(noted, body.replace(r#""m" "#, &format!(r#""m"{note}"#)));
}
