use super::*;

#[test]
fn an_approval_never_goes_upstream_and_is_not_in_the_fingerprint() {
    let with = raw(
        Route::Chat,
        r#"{ "messages": [{"role":"user","content":"hi"}], "options": {"hook_approval": "t", "seed": 1} }"#,
    );
    assert_eq!(with.unchanged(), r#"{ "messages": [{"role":"user","content":"hi"}], "options": {"seed": 1} }"#);
    let bytes = with.rewrite(&[Message::new("user", "yo")]).unwrap();
    assert_eq!(bytes, r#"{ "messages": [{"role":"user","content":"yo"}], "options": {"seed": 1} }"#);
    let without = raw(Route::Chat, r#"{"options":{"seed":1},"messages":[{"content":"h\u0069","role":"user"}]}"#);
    assert_eq!(with.fingerprint("k"), without.fingerprint("k"));
    assert_ne!(with.fingerprint("k"), without.fingerprint("other"));
    let alone = raw(Route::Chat, r#"{"messages":[],"options":{"hook_approval":"t"}}"#);
    assert_eq!(alone.fingerprint("k"), raw(Route::Chat, r#"{"messages":[]}"#).fingerprint("k"));
    assert_ne!(alone.fingerprint("k"), raw(Route::ChatCompletions, r#"{"messages":[]}"#).fingerprint("k"));
}

#[test]
fn a_call_of_another_type_keeps_its_form_where_its_message_is_built_anew() {
    let calls = json!([{"id": "1", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
                       {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let asks = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let request = request(Route::ChatCompletions, &json!({"messages": [{"role": "user", "content": "x"}, asks]}));
    let moved = shown(&request);
    let new = rewritten(&request, &json!([moved[1], {"role": "system", "content": "s"}, moved[0], moved[1]])).unwrap();
    let built = new["messages"].as_array().unwrap();
    assert!(
        built.iter().filter(|message| message["role"] == "assistant").all(|message| message["tool_calls"] == calls),
        "{new}"
    );
}

#[test]
fn no_messages_are_no_rewrite() {
    for (route, body) in [
        (Route::Chat, json!({"messages": [{"role": "user", "content": "x"}]})),
        (Route::Generate, json!({"prompt": "x"})),
    ] {
        assert!(rewritten(&request(route, &body), &json!([])).is_err(), "{body}");
    }
}

#[test]
fn equal_messages_keep_their_bytes_in_a_list_that_grows_or_shrinks() {
    let body = r#"{"messages" : [ {"role":"system","content":"s"} , {"role":"user","content":"a", "x": 1E+2},{"role":"assistant","content":"b"},{"role":"user","content":"c","images":["aGVsbG8="]} ]}"#;
    let request = raw(Route::Chat, body);
    let messages = request.view().messages.to_vec();
    let mut grown = messages.clone();
    grown.insert(1, Message::new("system", "guard"));
    assert_eq!(
        request.rewrite(&grown).unwrap(),
        body.replace(r#""s"} , "#, r#""s"},{"content":"guard","role":"system"},"#)
    );
    assert_eq!(
        request.rewrite(&messages[2..]).unwrap(),
        r#"{"messages" : [{"role":"assistant","content":"b"},{"role":"user","content":"c","images":["aGVsbG8="]} ]}"#
    );
    let mut both = vec![Message::new("system", "guard")];
    both.extend(messages);
    both[4].content = Some("redacted".into());
    both[4].images = None;
    let out = request.rewrite(&both).unwrap();
    assert_eq!(
        out,
        body.replace(r#"[ {"role":"system""#, r#"[{"content":"guard","role":"system"},{"role":"system""#)
            .replace(r#""c""#, r#""redacted""#)
    );
}

#[test]
fn a_message_that_is_left_out_is_no_other_one_without_a_text() {
    let request = request(
        Route::ChatCompletions,
        &json!({"messages": [
            {"role": "user", "content": "to be dropped"},
            {"role": "user", "content": []},
            {"role": "user", "content": ""},
        ]}),
    );
    let mut messages = request.view().messages.to_vec();
    messages.remove(0);
    messages.splice(1..1, [Message::new("user", "")]);
    messages.insert(0, Message::new("user", "first"));
    let bytes = request.rewrite(&messages).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("to be dropped"), "{bytes:?}");
}

#[test]
fn an_orphaned_tool_result_is_not_held() {
    let request = request(
        Route::ChatCompletions,
        &json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"},
        ]}),
    );
    let mut messages = shown(&request);
    messages.as_array_mut().unwrap().remove(1);
    assert!(rewritten(&request, &messages).unwrap_err().contains("without its call"));
    let emptied =
        json!([{"role": "user"}, {"role": "assistant", "tool_calls": []}, {"role": "tool", "tool_call_id": "c1"}]);
    assert!(rewritten(&request, &emptied).unwrap_err().contains("without its call"));
    let both_gone = json!([{"role": "user", "content": "q"}]);
    assert_eq!(rewritten(&request, &both_gone).unwrap()["messages"], json!([{"role": "user", "content": "q"}]));
}

#[test]
fn generate_holds_one_system_and_one_user_message() {
    let request = request(Route::Generate, &json!({"prompt": "p", "images": ["aGVsbG8="]}));
    let user = json!({"role": "user", "content": "x"});
    let system = json!({"role": "system", "content": "s"});
    assert_eq!(
        rewritten(&request, &json!([system, user])).unwrap(),
        json!({"prompt": "x", "images": ["aGVsbG8="], "system": "s"})
    );
    assert_eq!(rewritten(&request, &json!([{"role": "user", "images": []}])).unwrap(), json!({"prompt": "p"}));
    for messages in [
        json!([system, system, user]),
        json!([user, user]),
        json!([system]),
        json!([user, {"role": "assistant", "content": "x"}]),
    ] {
        assert!(rewritten(&request, &messages).is_err(), "{messages}");
    }
    let with_system = super::request(Route::Generate, &json!({"system": "s", "prompt": "p"}));
    assert_eq!(rewritten(&with_system, &json!([user])).unwrap(), json!({"prompt": "x"}));
}

#[test]
fn completions_hold_no_system_message() {
    let request = request(Route::Completions, &json!({"prompt": "p"}));
    let system = json!({"role": "system", "content": "s"});
    assert!(rewritten(&request, &json!([system, {"role": "user", "content": "p"}])).is_err());
    assert_eq!(rewritten(&request, &json!([{"role": "user", "content": ""}])).unwrap(), json!({"prompt": ""}));
}

#[test]
fn signed_thinking_is_dropped_never_changed() {
    let body = json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "secret", "signature": "sig"},
            {"type": "text", "text": "a"}]}]});
    let request = request(Route::Messages, &body);
    let with = |thinking| json!([{"role": "user"}, {"role": "assistant", "thinking": thinking}, {"role": "assistant"}]);
    assert!(rewritten(&request, &with("changed")).unwrap_err().contains("signed"));
    assert_eq!(rewritten(&request, &with("secret")).unwrap(), body);
    let dropped = json!([{"type": "text", "text": "a"}]);
    assert_eq!(rewritten(&request, &with("")).unwrap()["messages"][1]["content"], dropped);
    let removed = json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]);
    assert_eq!(rewritten(&request, &removed).unwrap()["messages"][1]["content"], dropped);
}

#[test]
fn opaque_parts_are_kept_or_dropped_never_changed() {
    let body = json!({"messages": [{"role": "user", "content": [
        {"type": "text", "text": "a"}, {"type": "mystery", "words": "evil"}]}]});
    let request = request(Route::ChatCompletions, &body);
    let mut messages = shown(&request);
    assert_eq!(rewritten(&request, &messages).unwrap(), body);
    messages[1]["value"]["words"] = "good".into();
    assert!(rewritten(&request, &messages).is_err());
    messages.as_array_mut().unwrap().pop();
    assert_eq!(
        rewritten(&request, &messages).unwrap()["messages"][0]["content"],
        json!([{"type": "text", "text": "a"}])
    );
}

#[test]
fn arguments_that_are_an_object_stay_one() {
    let body = json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1}}]}]});
    let request = request(Route::Messages, &body);
    let with = |arguments: &str| json!([{"role": "assistant", "tool_calls": [{"id": "u", "type": "function", "function": {"name": "f", "arguments": arguments}}]}]);
    let out = rewritten(&request, &with("{\"b\": 2}")).unwrap();
    assert_eq!(out["messages"][0]["content"][0]["input"], json!({"b": 2}));
    for bad in ["[]", "", "{", "{} {}", "\"x\""] {
        assert!(rewritten(&request, &with(bad)).unwrap_err().contains("must stay a JSON object"), "{bad}");
    }
}

#[test]
fn anthropic_takes_a_new_system_message_in_front_only() {
    let user = json!({"role": "user", "content": "q"});
    let guard = json!({"role": "system", "content": "guard"});
    let none = request(Route::Messages, &json!({"messages": [user]}));
    assert_eq!(rewritten(&none, &json!([guard, user])).unwrap(), json!({"messages": [user], "system": "guard"}));
    let lone = request(Route::Messages, &json!({"system": "s", "messages": [user]}));
    assert_eq!(
        rewritten(&lone, &json!([guard, {"role": "system", "content": "s"}, user])).unwrap()["system"],
        json!([{"type": "text", "text": "guard"}, {"type": "text", "text": "s"}])
    );
    assert!(rewritten(&lone, &json!([{"role": "system", "content": "s"}, user, guard])).is_err());
}

#[test]
fn a_new_turn_of_anthropic_is_built_of_blocks() {
    let request = request(Route::Messages, &json!({"messages": [{"role": "user", "content": "q"}]}));
    let call = json!({"id": "u", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
    let out = rewritten(
        &request,
        &json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "c", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "u", "content": "r"}, {"role": "user", "content": "go on"}]),
    );
    assert_eq!(
        out.unwrap()["messages"],
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "text", "text": "c"}, {"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "u", "content": [{"type": "text", "text": "r"}]},
                {"type": "text", "text": "go on"}]},
        ])
    );
}

#[test]
fn a_lone_input_becomes_a_list_where_others_join_it() {
    let request = raw(Route::Responses, r#"{"input" : "h\u0069"}"#);
    let bytes = request
        .rewrite(&[Message::new("user", "first"), Message::new("assistant", "ok"), Message::new("user", "hi")])
        .unwrap();
    assert!(bytes.ends_with(br#"{"role":"user","content":"h\u0069"}]}"#), "{bytes:?}");
    let out: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(out["input"][1]["content"][0], json!({"type": "output_text", "text": "ok"}));
}

#[test]
fn calls_are_changed_added_and_taken_out_one_by_one() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let request = request(
        Route::ChatCompletions,
        &json!({"messages": [{"role": "assistant", "content": null, "tool_calls": [call("a", "{}"), call("b", "{}")]}]}),
    );
    let with = |calls: Value| {
        rewritten(&request, &json!([{"role": "assistant", "tool_calls": calls}])).unwrap()["messages"][0].clone()
    };
    assert_eq!(
        with(json!([call("a", "{\"x\":1}"), call("b", "{}")]))["tool_calls"],
        json!([call("a", "{\"x\":1}"), call("b", "{}")])
    );
    assert_eq!(with(json!([call("b", "[]")]))["tool_calls"], json!([call("b", "[]")]));
    assert_eq!(
        with(json!([call("a", "{}"), call("n", "1"), call("b", "{}")]))["tool_calls"],
        json!([call("a", "{}"), call("n", "1"), call("b", "{}")])
    );
    assert_eq!(with(json!([])), json!({"role": "assistant", "content": ""}));
}

#[test]
fn what_a_hook_was_told_about_a_part_is_never_written_into_another() {
    let body = json!({"messages": [{"role": "user", "content": [
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, {"type": "text", "text": "t"}]}]});
    let request = request(Route::ChatCompletions, &body);
    let mut messages = shown(&request).as_array().unwrap().clone();
    messages.swap(0, 1);
    messages[0] = json!({"role": "user"});
    assert!(rewritten(&request, &json!(messages)).is_err());
    messages.push(messages[1].clone());
    assert!(rewritten(&request, &json!(messages)).is_err());
}

#[test]
fn words_can_take_the_place_of_an_image() {
    let part = json!({"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}});
    let body = json!({"messages": [{"role": "user", "content": [part, {"type": "text", "text": "look"}]}]});
    let request = request(Route::Messages, &body);
    let messages = json!([{"role": "user", "content": "[image removed]", "images": []}, {"role": "user"}]);
    assert_eq!(
        rewritten(&request, &messages).unwrap()["messages"][0]["content"],
        json!([{"type": "text", "text": "[image removed]"}, {"type": "text", "text": "look"}])
    );
    let named = json!([{"role": "user", "content": "beside the image"}, {"role": "user"}]);
    assert!(rewritten(&request, &named).is_err());
    let gone = json!([{"role": "user", "images": []}, {"role": "user"}]);
    assert_eq!(
        rewritten(&request, &gone).unwrap()["messages"][0]["content"],
        json!([{"type": "text", "text": "look"}])
    );
}
