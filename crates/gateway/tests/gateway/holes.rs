//! Holes of the published implementation that must not be here.

use gatehook_engine::events::{Event, Input, Output, Permission};
use serde_json::{Value, json};

use crate::support::{Gate, Judged, Upstream, post, post_with, response, says};

/// A gateway whose hook denies whatever holds `evil`.
fn no_evil(upstream: &Upstream) -> Gate {
    Gate::guarded(upstream, Event::PreInference, |input| {
        let text = serde_json::to_string(input).unwrap();
        Ok(Some(says(if text.contains("evil") { Permission::Deny } else { Permission::Allow })))
    })
}

/// Such a body is refused before any hook is asked, and the upstream never sees it.
fn refused(path: &str, body: &str) {
    let upstream = Upstream::json("{}");
    let reply = no_evil(&upstream).ask(post(path, body));
    assert_eq!(reply.status, 400, "{body}");
    assert!(reply.json().get("hook").is_none(), "{body}: no hook was asked");
    assert!(upstream.saw_nothing(), "{body}");
}

#[test]
fn a_body_with_both_messages_and_prompt_is_refused() {
    refused("/api/generate", r#"{"model":"m","messages":[{"role":"user","content":"x"}],"prompt":"y"}"#);
    refused("/api/chat", r#"{"model":"m","prompt":"y","messages":[{"role":"user","content":"x"}]}"#);
    refused("/v1/chat/completions", r#"{"model":"m","prompt":"y","messages":[{"role":"user","content":"x"}]}"#);
    refused("/v1/completions", r#"{"model":"m","prompt":"y","messages":[{"role":"user","content":"x"}]}"#);
}

#[test]
fn a_key_that_stands_twice_is_refused_at_any_depth() {
    for body in [
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],"messages":[{"role":"user","content":"y"}]}"#,
        r#"{"model":"m","messages":[{"role":"user","content":"x","content":"y"}]}"#,
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],"mess\u0061ges":[{"role":"user","content":"y"}]}"#,
    ] {
        refused("/api/chat", body);
    }
    refused(
        "/v1/messages",
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x","text":"y"}]}]}"#,
    );
}

#[test]
fn a_key_in_other_case_is_refused_at_any_depth_and_however_it_folds() {
    for body in [
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],"Messages":[{"role":"user","content":"y"}]}"#,
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],"meſſages":[{"role":"user","content":"y"}]}"#,
        r#"{"model":"m","messages":[{"role":"user","content":"x","Content":"y"}]}"#,
    ] {
        refused("/api/chat", body);
    }
}

#[test]
fn what_is_not_one_json_value_is_refused() {
    for body in [
        r#"{"model":"m","messages":[{"role":"user","content":"x"}]}{"model":"m"}"#,
        "\u{feff}{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],}"#,
    ] {
        refused("/v1/chat/completions", body);
    }
}

#[test]
fn no_model_name_goes_round_the_hooks() {
    let upstream = Upstream::json("{}");
    let gate = no_evil(&upstream);
    for model in ["m:cloud", "m-cloud", "x/m:cloud", "", "m\u{0}"] {
        for path in ["/api/chat", "/v1/chat/completions", "/v1/messages"] {
            let body = json!({"model": model, "messages": [{"role": "user", "content": "evil"}]}).to_string();
            assert_eq!(gate.ask(post(path, &body)).status, 400, "{model:?} {path}");
        }
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn a_stream_is_judged_before_the_call() {
    let upstream = Upstream::json("{}");
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"evil"}]}"#;
    for path in ["/api/chat", "/v1/chat/completions", "/v1/messages"] {
        assert_eq!(no_evil(&upstream).ask(post(path, body)).status, 400, "{path}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn every_text_of_generate_is_shown() {
    let upstream = Upstream::json("{}");
    let gate = no_evil(&upstream);
    for field in ["prompt", "system", "suffix", "template"] {
        let mut body = json!({"model": "m", "prompt": "x"});
        body[field] = Value::from("evil");
        assert_eq!(gate.ask(post("/api/generate", &body.to_string())).status, 400, "{field}");
    }
    assert!(upstream.saw_nothing());
}

#[test]
fn a_compressed_body_is_read() {
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let request = |text: &str| {
        let body = gzip(text);
        let mut request = format!(
            "POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend(body);
        request
    };
    let upstream = Upstream::json("{}");
    assert_eq!(no_evil(&upstream).ask(request(r#"{"model":"m","input":"evil"}"#)).status, 400);
    assert!(upstream.saw_nothing());
    // Not rewritten: as it came.
    let fine = r#"{"model":"m","input":"fine"}"#;
    assert_eq!(no_evil(&upstream).ask(request(fine)).status, 200);
    let seen = upstream.seen();
    assert_eq!((seen.header("content-encoding"), &seen.body), (Some("gzip"), &gzip(fine)));
    // Rewritten: as it is.
    let gate = Gate::guarded(&upstream, Event::PreInference, |input| {
        let mut messages = input.messages.as_deref().unwrap_or_default().to_vec();
        messages[0].content = Some("other".into());
        Ok(Some(Output { messages: Some(messages), ..says(Permission::Modify) }))
    });
    assert_eq!(gate.ask(request(fine)).status, 200);
    let seen = upstream.seen();
    assert_eq!((seen.header("content-encoding"), seen.text()), (None, fine.replace("fine", "other")));
}

#[test]
fn a_message_is_cut_between_characters_and_freed_of_control_characters() {
    let upstream = Upstream::json("{}");
    let gate = Gate::guarded(&upstream, Event::PreInference, |_| {
        let text = format!("\u{1b}[31m\u{7}{}", "é🙂".repeat(300));
        Ok(Some(Output { user_message: Some(text), ..says(Permission::Deny) }))
    });
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let json = gate.ask(post("/api/chat", body)).json();
    let said = json["error"].as_str().unwrap();
    assert_eq!(said.chars().count(), 256);
    assert!(!said.contains('\u{1b}') && said.contains("é🙂"), "{said}");
}

#[test]
fn text_outside_of_its_usual_slot_is_rewritten_or_dropped_with_the_rest() {
    let redact =
        |_: &Input| -> Judged { Ok(Some(Output { output_text: Some("gone".into()), ..says(Permission::Modify) })) };
    let logprobs = json!({"content": [{"token": "secret", "logprob": -0.1, "bytes": null, "top_logprobs": []}]});
    for (path, request, answer) in [
        (
            "/v1/chat/completions",
            json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}),
            json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "logprobs": logprobs,
                "message": {"role": "assistant", "content": "secret"}, "finish_reason": "stop"}],
                "__verbose": {"content": "secret", "prompt": "secret"}}),
        ),
        (
            "/api/generate",
            json!({"model": "m", "prompt": "x", "stream": false}),
            json!({"model": "m", "response": "secret", "done": true, "context": [1, 2, 3]}),
        ),
    ] {
        let upstream = Upstream::json(&answer.to_string());
        let gate = Gate::guarded(&upstream, Event::PostInference, redact);
        let reply = gate.ask(post(path, &request.to_string()));
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.text().contains("secret") && reply.text().contains("gone"), "{path}: {}", reply.text());
        assert!(reply.json().get("context").is_none(), "{path}: the tokens are the text");
    }
}

#[test]
fn an_approval_never_reaches_the_upstream() {
    let upstream = Upstream::json("{}");
    let gate = Gate::guarded(&upstream, Event::PreInference, |input| {
        let approved = input.approval.as_deref() == Some("t-1");
        Ok(Some(says(if approved { Permission::Allow } else { Permission::Ask })))
    });
    let bare = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"options":{"seed":1}}"#;
    assert_eq!(gate.ask(post("/api/chat", bare)).status, 403);
    assert_eq!(gate.ask(post_with("/api/chat", "X-Gatehook-Approval: t-1\r\n", bare)).status, 200);
    assert!(!upstream.seen().head.contains("t-1"));
    let within = bare.replace("\"seed\":1", "\"hook_approval\":\"t-1\",\"seed\":1");
    assert_eq!(gate.ask(post("/api/chat", &within)).status, 200);
    assert_eq!(upstream.seen().text(), bare);
}

#[test]
fn a_compressed_answer_is_read_although_none_was_asked_for() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let answer = json!({"model": "m", "message": {"role": "assistant", "content": "secret"}, "done": true});
    std::io::Write::write_all(&mut encoder, answer.to_string().as_bytes()).unwrap();
    let body = encoder.finish().unwrap();
    let mut whole = response(200, "application/json\r\nContent-Encoding: gzip", "");
    let head =
        String::from_utf8(whole).unwrap().replace("Content-Length: 0", &format!("Content-Length: {}", body.len()));
    whole = head.into_bytes();
    whole.extend(&body);
    let upstream = Upstream::answering(whole);
    let gate = Gate::guarded(&upstream, Event::PostInference, |input| {
        let secret = input.output_text.as_deref() == Some("secret");
        Ok(Some(says(if secret { Permission::Deny } else { Permission::Allow })))
    });
    let request = r#"{"model":"m","stream":false,"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(gate.ask(post("/api/chat", request)).status, 400);
}
