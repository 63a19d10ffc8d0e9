//! The contract of Ollama's inference webhooks: <https://github.com/ollama/ollama/pull/15630>.

use std::borrow::Cow;

use bytes::Bytes;
use gatehook_events::{Event, FailureKind, Input, Message, Output, Permission, Segment, ToolCall};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::handler::HandlerError;
use crate::unique;

const NO_VERDICT: &str = "The policy hook gave no verdict, so this is refused.";
const UNKNOWN_VERDICT: &str = "The policy hook gave a verdict that is not known, so this is refused.";

/// What the webhook is told. Fields after `tool_calls` are additions to the published contract.
#[derive(Serialize)]
struct Question<'a> {
    schema_version: u32,
    event: &'static str,
    request_id: &'a str,
    route: &'a str,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<&'a [Message]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [ToolCall]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<Segment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suffix: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a Value>,
}

/// The body of the request.
pub(super) fn question(event: Event, input: &Input) -> Result<Bytes, HandlerError> {
    let after = is_after(event)?;
    let question = Question {
        schema_version: 1,
        event: event.name(),
        request_id: input.request_id.as_deref().unwrap_or_default(),
        route: input.route.as_deref().unwrap_or_default(),
        model: input.model_id.as_deref().unwrap_or_default(),
        messages: input.messages.as_deref().or((!after).then_some(&[])),
        tools: input.tools.as_deref(),
        options: options(input),
        output_text: input.output_text.as_deref().or(after.then_some("")),
        output_thinking: input.output_thinking.as_deref(),
        tool_calls: input.tool_calls.as_deref(),
        segment: input.segment,
        done_reason: input.done_reason.as_deref(),
        usage: input.usage.as_ref(),
        stream: input.stream,
        format: input.format.as_deref(),
        suffix: input.suffix.as_deref(),
        template: input.template.as_deref(),
        context: input.context.as_deref(),
    };
    serde_json::to_vec(&question)
        .map(Bytes::from)
        .map_err(|error| HandlerError::new(FailureKind::HandlerError, format!("the input has no JSON: {error}")))
}

/// The caller's options, and among them the approval that the caller presents, wherever it stood in the request.
fn options(input: &Input) -> Option<Cow<'_, Value>> {
    let Some(approval) = input.approval.as_deref() else { return input.options.as_deref().map(Cow::Borrowed) };
    let mut options = input.options.as_deref().and_then(Value::as_object).cloned().unwrap_or_default();
    options.insert("hook_approval".to_owned(), approval.into());
    Some(Cow::Owned(Value::Object(options)))
}

fn is_after(event: Event) -> Result<bool, HandlerError> {
    match event {
        Event::PreInference => Ok(false),
        Event::PostInference => Ok(true),
        _ => Err(HandlerError::new(FailureKind::HandlerError, "its contract knows the inference events alone")),
    }
}

/// What the webhook answered. No verdict and an unknown one are denials; what cannot be read is a failure. Changes
/// count with `modify` alone, and only those that the event can make; without any it is an `allow`.
pub(super) fn answer(event: Event, body: &[u8]) -> Result<Output, HandlerError> {
    let after = is_after(event)?;
    let parsed =
        unique::parse(body).map_err(|kind| HandlerError::new(kind, "its reply is not one plain JSON object"))?;
    let Value::Object(mut reply) = parsed else { return Err(unreadable("its reply is no JSON object")) };
    let mut output = Output {
        user_message: text(&mut reply, "user_message")?,
        agent_message: text(&mut reply, "agent_message")?,
        ..Output::default()
    };
    if after {
        output.holdback_chars = field(&mut reply, "holdback_chars")?;
    }
    let verb = reply.remove("permission").filter(|verb| !verb.is_null());
    let known = match verb.as_ref().map(Value::as_str) {
        Some(Some("allow")) => Ok(Permission::Allow),
        Some(Some("deny")) => Ok(Permission::Deny),
        Some(Some("ask")) => Ok(Permission::Ask),
        Some(Some("modify")) => Ok(Permission::Modify),
        Some(_) => Err(UNKNOWN_VERDICT),
        None => Err(NO_VERDICT),
    };
    output.permission = Some(match known {
        Ok(Permission::Modify) if !changes(&mut output, &mut reply, after)? => Permission::Allow,
        Ok(permission) => permission,
        Err(sentence) => {
            output.user_message.get_or_insert_with(|| sentence.to_owned());
            Permission::Deny
        }
    });
    Ok(output)
}

/// Reads the changes that the event can make; false where there are none.
fn changes(output: &mut Output, reply: &mut Map<String, Value>, after: bool) -> Result<bool, HandlerError> {
    if after {
        output.output_text = text(reply, "output_text")?.map(Into::into);
        output.output_thinking = text(reply, "output_thinking")?.map(Into::into);
        output.tool_calls = field(reply, "tool_calls")?;
    } else {
        output.messages = field(reply, "messages")?;
    }
    Ok(output.messages.is_some()
        || output.output_text.is_some()
        || output.output_thinking.is_some()
        || output.tool_calls.is_some())
}

fn text(reply: &mut Map<String, Value>, key: &'static str) -> Result<Option<String>, HandlerError> {
    field(reply, key)
}

/// Absent and null are the same.
fn field<T: DeserializeOwned>(reply: &mut Map<String, Value>, key: &'static str) -> Result<Option<T>, HandlerError> {
    let Some(value) = reply.remove(key) else { return Ok(None) };
    // The error of serde would show the reply's own text.
    serde_json::from_value(value).map_err(|_| unreadable(&format!("`{key}` of its reply is of the wrong type")))
}

fn unreadable(message: &str) -> HandlerError {
    HandlerError::new(FailureKind::MalformedJson, message)
}

#[cfg(test)]
mod tests {
    use gatehook_events::SegmentKind;
    use serde_json::json;

    use super::*;

    fn pre(reply: &str) -> Result<Output, HandlerError> {
        answer(Event::PreInference, reply.as_bytes())
    }

    fn post(reply: &str) -> Result<Output, HandlerError> {
        answer(Event::PostInference, reply.as_bytes())
    }

    #[test]
    fn the_four_verbs_are_read() {
        for (verb, permission) in [("allow", Permission::Allow), ("deny", Permission::Deny), ("ask", Permission::Ask)] {
            let output =
                pre(&json!({"permission": verb, "user_message": "u", "agent_message": "a"}).to_string()).unwrap();
            assert_eq!(output.permission, Some(permission));
            assert_eq!((output.user_message.as_deref(), output.agent_message.as_deref()), (Some("u"), Some("a")));
        }
        let output = pre(r#"{"permission":"modify","messages":[{"role":"user","content":"x"}]}"#).unwrap();
        assert_eq!(output.permission, Some(Permission::Modify));
        assert_eq!(output.messages, Some(vec![Message::new("user", "x")]));
    }

    #[test]
    fn what_is_no_known_verdict_is_a_denial_with_a_sentence() {
        for reply in [
            "{}",
            r#"{"permission":null}"#,
            r#"{"permission":"ALLOW"}"#,
            r#"{"permission":"block"}"#,
            r#"{"permission":true}"#,
            r#"{"permission":["allow"]}"#,
            r#"{"Permission":"allow"}"#,
            r#"{"permission":""}"#,
        ] {
            let output = pre(reply).unwrap();
            assert_eq!(output.permission, Some(Permission::Deny), "{reply}");
            assert!(output.user_message.is_some(), "{reply}");
        }
        assert_eq!(pre(r#"{"user_message":"mine"}"#).unwrap().user_message.as_deref(), Some("mine"));
    }

    #[test]
    fn a_modify_that_gives_nothing_is_an_allow() {
        for reply in [
            r#"{"permission":"modify"}"#,
            r#"{"permission":"modify","messages":null}"#,
            r#"{"permission":"modify","output_text":"of the other event"}"#,
        ] {
            assert_eq!(
                pre(reply).unwrap(),
                Output { permission: Some(Permission::Allow), ..Output::default() },
                "{reply}"
            );
        }
        assert_eq!(post(r#"{"permission":"modify","messages":[]}"#).unwrap().permission, Some(Permission::Allow));
    }

    #[test]
    fn empty_values_empty_a_field() {
        let output =
            post(r#"{"permission":"modify","output_text":"","tool_calls":[],"output_thinking":null}"#).unwrap();
        assert_eq!(output.permission, Some(Permission::Modify));
        assert_eq!((output.output_text.as_deref(), output.tool_calls), (Some(""), Some(vec![])));
        assert_eq!(output.output_thinking, None);
        assert_eq!(pre(r#"{"permission":"modify","messages":[]}"#).unwrap().messages, Some(vec![]));
    }

    #[test]
    fn changes_count_with_modify_alone() {
        for verb in ["allow", "deny", "ask"] {
            let reply = json!({"permission": verb, "messages": [], "output_text": "x"}).to_string();
            assert_eq!(pre(&reply).unwrap().messages, None, "{verb}");
            assert_eq!(post(&reply).unwrap().output_text, None, "{verb}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_failure() {
        for (reply, kind) in [
            ("", FailureKind::MalformedJson),
            ("<html></html>", FailureKind::MalformedJson),
            ("[]", FailureKind::MalformedJson),
            ("null", FailureKind::MalformedJson),
            (r#""allow""#, FailureKind::MalformedJson),
            (r#"{"permission":"allow","permission":"deny"}"#, FailureKind::DuplicateKey),
            (r#"{"permission":"allow"}{}"#, FailureKind::TrailingData),
            (r#"{"permission":"allow","user_message":1}"#, FailureKind::MalformedJson),
            (r#"{"permission":"modify","messages":"x"}"#, FailureKind::MalformedJson),
            (r#"{"permission":"modify","messages":[{"content":"x"}]}"#, FailureKind::MalformedJson),
        ] {
            assert_eq!(pre(reply).unwrap_err().kind, kind, "{reply}");
        }
    }

    #[test]
    fn a_failure_does_not_repeat_what_the_webhook_wrote() {
        for reply in [r#"{"user_message":["hunter2"]}"#, r#"{"permission":"modify","messages":"hunter2"}"#] {
            assert!(!pre(reply).unwrap_err().message.contains("hunter2"), "{reply}");
        }
    }

    #[test]
    fn the_question_has_the_published_fields() {
        let input = Input {
            request_id: Some("id".into()),
            route: Some("/api/chat".into()),
            model_id: Some("llama3".into()),
            messages: Some([Message::new("user", "hi")].into()),
            options: Some(json!({"temperature": 1}).into()),
            session_id: Some("not told".into()),
            ..Input::default()
        };
        let body: Value = serde_json::from_slice(&question(Event::PreInference, &input).unwrap()).unwrap();
        assert_eq!(
            body,
            json!({"schema_version": 1, "event": "pre_inference", "request_id": "id", "route": "/api/chat",
                   "model": "llama3", "messages": [{"role": "user", "content": "hi"}], "options": {"temperature": 1}})
        );
        let input = Input { output_text: Some("out".into()), done_reason: Some("stop".into()), ..Input::default() };
        let body: Value = serde_json::from_slice(&question(Event::PostInference, &input).unwrap()).unwrap();
        assert_eq!(
            body,
            json!({"schema_version": 1, "event": "post_inference", "request_id": "", "route": "", "model": "",
                   "output_text": "out", "done_reason": "stop"})
        );
        assert!(question(Event::PreToolUse, &input).is_err());
    }

    #[test]
    fn a_part_of_a_stream_is_told_from_a_whole_answer_and_may_be_held_back() {
        let segment = Some(Segment { index: 2, final_: true, kind: SegmentKind::Text });
        let input = Input { output_text: Some("out".into()), segment, ..Input::default() };
        let body: Value = serde_json::from_slice(&question(Event::PostInference, &input).unwrap()).unwrap();
        assert_eq!(body["segment"], json!({"index": 2, "final": true, "kind": "text"}));
        assert_eq!(post(r#"{"permission":"allow","holdback_chars":8}"#).unwrap().holdback_chars, Some(8));
        assert!(post(r#"{"permission":"allow","holdback_chars":-8}"#).is_err());
        assert_eq!(pre(r#"{"permission":"allow","holdback_chars":8}"#).unwrap().holdback_chars, None);
    }

    #[test]
    fn an_approval_is_told_among_the_options_however_it_was_presented() {
        for (options, told) in [
            (None, json!({"hook_approval": "t-1"})),
            (Some(json!({"seed": 1})), json!({"seed": 1, "hook_approval": "t-1"})),
            (Some(json!({"hook_approval": "of the body"})), json!({"hook_approval": "t-1"})),
        ] {
            let options = options.map(Into::into);
            let input = Input { options, approval: Some("t-1".into()), ..Input::default() };
            for event in [Event::PreInference, Event::PostInference] {
                let body: Value = serde_json::from_slice(&question(event, &input).unwrap()).unwrap();
                assert_eq!(body["options"], told, "{event:?}");
            }
        }
    }
}
