use super::*;

const CHATS: [Route; 3] = [Route::Chat, Route::ChatCompletions, Route::Messages];

#[test]
fn a_body_with_both_messages_and_prompt_is_refused() {
    let body = r#"{"messages":[{"role":"user","content":"benign"}],"prompt":"evil"}"#;
    for route in Route::ALL {
        ambiguous(*route, body);
    }
    for key in ["input", "prompt", "instructions"] {
        ambiguous(Route::Messages, &format!(r#"{{"messages":[],"{key}":"evil"}}"#));
    }
    ambiguous(Route::Responses, r#"{"input":"benign","prompt":"evil"}"#);
    ambiguous(TextRoute::Embed, r#"{"input":"benign","prompt":"evil"}"#);
}

#[test]
fn an_approval_stands_in_its_own_place_alone() {
    for route in CHATS {
        ambiguous(route, r#"{"messages":[],"hook_approval":"t-1"}"#);
    }
    ambiguous(Route::ChatCompletions, r#"{"messages":[],"options":{"hook_approval":"t-1"}}"#);
    raw(Route::ChatCompletions, r#"{"messages":[],"options":{"seed":1}}"#);
    raw(Route::Chat, r#"{"messages":[],"options":{"hook_approval":"t-1"}}"#);
}

#[test]
fn a_foreign_field_that_is_null_is_no_ambiguity() {
    raw(Route::Chat, r#"{"messages":[],"prompt":null}"#);
}

#[test]
fn keys_in_other_case_are_refused() {
    for route in CHATS {
        ambiguous(route, r#"{"Messages":[]}"#);
        ambiguous(route, r#"{"messages":[{"role":"user","Content":"x"}]}"#);
        ambiguous(route, r#"{"messages":[{"ROLE":"user","content":"x"}]}"#);
        ambiguous(route, r#"{"messages":[],"Prompt":"x"}"#);
        ambiguous(route, r#"{"messages":[],"MODEL":"x"}"#);
        ambiguous(route, r#"{"messages":[],"tools":[{"Name":"x"}]}"#);
    }
    ambiguous(Route::ChatCompletions, r#"{"messages":[{"role":"user","content":[{"type":"text","Text":"x"}]}]}"#);
    ambiguous(
        Route::ChatCompletions,
        r#"{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","Arguments":"{}"}}]}]}"#,
    );
    ambiguous(
        Route::Messages,
        r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","TEXT":"x"}]}]}]}"#,
    );
    ambiguous(Route::Responses, r#"{"input":[{"role":"user","Content":"x"}]}"#);
    ambiguous(Route::Generate, r#"{"prompt":"x","SYSTEM":"y"}"#);
    ambiguous(Route::Chat, r#"{"messages":[],"options":{"Hook_Approval":"x"}}"#);
}

#[test]
fn a_long_s_in_messages_is_refused() {
    for route in CHATS {
        ambiguous(route, "{\"me\u{17f}\u{17f}ages\":[]}");
        ambiguous(route, r#"{"me\u017fsages":[]}"#);
    }
    ambiguous(Route::Completions, "{\"prompt\":\"x\",\"\u{17f}uffix\":\"y\"}");
}

#[test]
fn duplicate_keys_at_any_depth_are_refused() {
    for route in CHATS {
        ambiguous(route, r#"{"messages":[],"messages":[]}"#);
        ambiguous(route, r#"{"messages":[],"mess\u0061ges":[]}"#);
        ambiguous(route, r#"{"messages":[{"role":"user","content":"a","content":"b"}]}"#);
        ambiguous(route, r#"{"messages":[],"unknown":[{"deep":{"a":1,"a":1}}]}"#);
    }
}

#[test]
fn deep_nesting_is_refused_not_overflowed() {
    let deep = format!(r#"{{"messages":{}"#, "[".repeat(100_000));
    assert!(matches!(refused(Route::Chat, &deep), ReadError::Malformed { .. }));
}

#[test]
fn an_escaped_key_is_the_key_it_spells() {
    let request = raw(Route::Chat, r#"{"mess\u0061ges":[{"role":"user","c\u006fntent":"hi"}]}"#);
    assert_eq!(shown(&request), json!([{"role": "user", "content": "hi"}]));
    let bytes = request.rewrite(&[Message::new("user", "yo")]).unwrap();
    assert_eq!(bytes, r#"{"mess\u0061ges":[{"role":"user","c\u006fntent":"yo"}]}"#);
}

#[test]
fn a_role_in_other_case_is_refused() {
    ambiguous(Route::Chat, r#"{"messages":[{"role":"System","content":"x"}]}"#);
    ambiguous(Route::Messages, r#"{"messages":[{"role":"user","content":[{"type":"Text","text":"x"}]}]}"#);
}

#[test]
fn two_spellings_of_the_thinking_must_agree() {
    let body = |other| {
        format!(r#"{{"messages":[{{"role":"assistant","content":"","reasoning":"a","reasoning_content":"{other}"}}]}}"#)
    };
    ambiguous(Route::ChatCompletions, &body("b"));
    let request = raw(Route::ChatCompletions, &body("a"));
    let out = rewritten(&request, &json!([{"role": "assistant", "thinking": "x"}])).unwrap();
    assert_eq!(
        out["messages"][0],
        json!({"role": "assistant", "content": "", "reasoning": "x", "reasoning_content": "x"})
    );
}

#[test]
fn an_option_beside_a_field_of_its_name_is_refused() {
    ambiguous(Route::Generate, r#"{"prompt":"x","raw":true,"options":{"raw":false}}"#);
    raw(Route::Generate, r#"{"prompt":"x","raw":true,"options":{"raw":true}}"#);
}

#[test]
fn wrong_types_of_what_a_hook_sees_are_refused() {
    for (route, body) in [
        (Route::Chat, r#"{"messages":{}}"#),
        (Route::Chat, r#"{"messages":["x"]}"#),
        (Route::Chat, r#"{"messages":[{"content":"x"}]}"#),
        (Route::Chat, r#"{"messages":[{"role":1,"content":"x"}]}"#),
        (Route::Chat, r#"{"messages":[{"role":"user","content":["x"]}]}"#),
        (Route::Chat, r#"{"messages":[{"role":"user","content":{"a":1}}]}"#),
        (Route::Chat, r#"{"messages":[{"role":"user","images":"x"}]}"#),
        (Route::Chat, r#"{"model":3,"messages":[]}"#),
        (Route::Chat, r#"{"messages":[],"stream":"yes"}"#),
        (Route::Chat, r#"{"messages":[],"tools":{}}"#),
        (Route::Chat, r#"{"messages":[],"options":{"hook_approval":1}}"#),
        (Route::Chat, "[]"),
        (Route::ChatCompletions, r#"{"messages":[{"role":"user","content":7}]}"#),
        (Route::ChatCompletions, r#"{"messages":[{"role":"user","content":[7]}]}"#),
        (Route::ChatCompletions, r#"{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":[]}}]}]}"#),
        (Route::Generate, r#"{"prompt":["x"]}"#),
        (Route::Generate, r#"{"prompt":"x","suffix":1}"#),
        (Route::Completions, r#"{"prompt":[{}]}"#),
        (Route::Responses, r#"{"input":{}}"#),
        (Route::Responses, r#"{"input":[{"type":"reasoning","summary":"x"}]}"#),
        (Route::Messages, r#"{"messages":[{"role":"user","content":["x"]}]}"#),
        (Route::Messages, r#"{"system":{},"messages":[]}"#),
    ] {
        let error = refused(route, body);
        assert!(matches!(error, ReadError::Shape { .. }), "{error}: {body}");
    }
}

#[test]
fn tokens_in_place_of_text_are_opaque() {
    for body in [r#"{"prompt":[1,2]}"#, r#"{"prompt":[[1,2]]}"#, r#"{"prompt":["a",1]}"#] {
        assert!(matches!(refused(Route::Completions, body), ReadError::Opaque { .. }), "{body}");
    }
    assert!(matches!(refused(Route::Completions, r#"{"prompt_embeds":"AAAA"}"#), ReadError::Opaque { .. }));
    assert!(matches!(refused(TextRoute::OpenAiEmbeddings, r#"{"input":[1]}"#), ReadError::Opaque { .. }));
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    let error = refused(Route::Chat, r#"{"messages":[{"role":"user","content":"\ud800"}]}"#);
    assert!(matches!(error, ReadError::Malformed { .. }), "{error}");
    raw(Route::Chat, r#"{"messages":[{"role":"user","content":"\u0000"}]}"#);
}

#[test]
fn more_messages_than_any_context_holds_are_refused() {
    let many = format!(r#"{{"input":[{}""]}}"#, r#""","#.repeat(70_000));
    assert!(refused(TextRoute::Embed, &many).to_string().contains("more than 65536 messages"));
}
