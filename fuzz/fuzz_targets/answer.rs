//! What webhooks of every contract answer, workers and Python functions: what is no whole, plain answer lets nothing pass.
//!
//! The first byte says who answers: `0` to `:` the contracts in their order, `;` a worker, `<` Python. The second is the number of the event among those the contract knows, the third a status, `0` is 200; the rest is the
//! answer. Before that of a mapped contract stands a line with its `request` and `reply` as JSON.

#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use gatehook_engine::config::{ReadOptions, hooks_from_json};
use gatehook_engine::definition::{Contract, WebhookDefinition};
use gatehook_engine::handlers::webhook::CONTRACTS;
use gatehook_engine::handlers::webhook::contracts::Agreement;
use gatehook_engine::handlers::{python, worker};
use gatehook_engine::reply::parse;
use gatehook_engine::text::plain;
use gatehook_engine::{HandlerDefinition, Payload, Reply};
use gatehook_events::{Event, FunctionCall, Input, Message, Output, Permission, PermissionDecision, Profile, ToolCall};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const STATUSES: [u16; 6] = [200, 201, 204, 302, 403, 500];

fuzz_target!(|data: &[u8]| {
    let [who, event, status, answer @ ..] = data else { return };
    let (event, status) = (usize::from(event.wrapping_sub(b'0')), usize::from(status.wrapping_sub(b'0')));
    let status = STATUSES[status % STATUSES.len()];
    match usize::from(who.wrapping_sub(b'0')) % (CONTRACTS.len() + 2) {
        at if at < CONTRACTS.len() => webhook(CONTRACTS[at].contract, event, status, answer),
        at if at == CONTRACTS.len() => line(worker::read_line, answer),
        _ => line(python::read_line, answer),
    }
});

fn webhook(contract: Contract, event: usize, status: u16, answer: &[u8]) {
    let terms = CONTRACTS.iter().find(|terms| terms.contract == contract).expect("it is one of them");
    let events: Vec<Event> = Event::all().filter(|event| terms.knows(*event)).collect();
    let event = events[event % events.len()];
    let (definition, answer) = match contract {
        Contract::Mapped => {
            let (rules, answer) =
                answer.split_at(answer.iter().position(|byte| *byte == b'\n').unwrap_or(answer.len()));
            let Some(definition) = mapped(event, rules) else { return };
            (definition, answer)
        }
        contract => (WebhookDefinition::new("http://127.0.0.1", contract), answer),
    };
    let Ok(agreement) = Agreement::of(&definition) else { return };
    let input = input(event);
    if let Ok(Some(question)) = agreement.question(event, &input, &Payload::default(), "id") {
        assert!(serde_json::from_slice::<Value>(&question).is_ok(), "a question is JSON: {question:?}");
    }
    let blocks = definition.mapping.is_some_and(|mapping| mapping.reply.block_status.contains(&status));
    let read = |answer: &[u8]| {
        let read = agreement.read(event, &input, status, &Bytes::copy_from_slice(answer));
        if let Err(error) = &read {
            assert_eq!(plain(&error.message), error.message, "sends more than text to a terminal");
        }
        read.ok()
    };
    let reply = read(answer);
    let passes = lets_pass(reply.as_ref());
    assert!(!passes || (200..300).contains(&status), "{status} lets something pass");
    assert!(!passes || !blocks, "{status} blocks");
    if let Some(Reply::Direct(Some(output))) = &reply {
        // Ollama's may give the whole request anew.
        if contract != Contract::Ollama {
            holds(&input, output);
        }
    }
    let spaced = [b" \n", answer, b"\n"].concat();
    assert_eq!(lets_pass(read(&spaced).as_ref()), passes, "blanks around an answer change it");
    cuts(answer, |part| lets_pass(read(part).as_ref()));
}

/// A contract that the line spells out, if it does.
fn mapped(event: Event, rules: &[u8]) -> Option<WebhookDefinition> {
    let Ok(Value::Object(mut hook)) = serde_json::from_slice(rules) else { return None };
    let fixed = json!({"type": "webhook", "url": "http://127.0.0.1", "contract": "mapped"});
    hook.extend(fixed.as_object().cloned().unwrap_or_default());
    let hooks = json!({event.public_name(): [hook]});
    let config = hooks_from_json(&hooks, &ReadOptions::default()).ok()?;
    let hook = config.groups.into_iter().next()?.hooks.into_iter().next()?;
    match hook.handler {
        HandlerDefinition::Webhook(definition) => Some(definition),
        _ => None,
    }
}

/// No part of an object that has lost its end lets anything pass, whatever the whole says.
fn cuts(answer: &[u8], passes: impl Fn(&[u8]) -> bool) {
    let answer = answer.trim_ascii();
    if answer.first() == Some(&b'{') && serde_json::from_slice::<Value>(answer).is_ok() {
        for len in [1, answer.len() / 3, answer.len() / 2, answer.len() - 1] {
            let part = &answer[..len];
            assert!(part.is_empty() || !passes(part), "{:?} lets something pass", String::from_utf8_lossy(part));
        }
    }
}

/// One line of a process.
fn line(read: fn(Bytes) -> Option<Result<Reply, gatehook_engine::HandlerError>>, answer: &[u8]) {
    let read = |answer: &[u8]| read(Bytes::copy_from_slice(answer)).and_then(Result::ok);
    if let Some(Reply::Process { exit_code, .. }) = read(answer) {
        assert_eq!(exit_code, 0);
    }
    cuts(answer, |part| lets_pass(read(part).as_ref()));
}

/// Whether what comes after may happen, as far as this answer goes.
fn lets_pass(reply: Option<&Reply>) -> bool {
    match reply {
        None => false,
        Some(Reply::Direct(None)) => true,
        Some(Reply::Direct(Some(output))) => allows(output),
        Some(Reply::Process { stdout, .. }) if stdout.trim_ascii().is_empty() => true,
        Some(Reply::Process { stdout, exit_code, .. }) => {
            *exit_code == 0 && parse(stdout, Profile::Native, false).is_ok_and(|output| allows(&output))
        }
        Some(Reply::Judged(judged)) => judged.answer.as_ref().is_ok_and(|it| it.as_ref().is_none_or(allows)),
    }
}

fn allows(output: &Output) -> bool {
    let specific = output.hook_specific_output.as_ref().and_then(|specific| specific.permission_decision);
    !output.is_blocked()
        && output.should_continue()
        && !matches!(output.permission, Some(Permission::Deny | Permission::Ask))
        && !matches!(specific, Some(PermissionDecision::Deny | PermissionDecision::Ask))
}

/// A rewrite puts new texts in the places of old ones, and nothing else.
fn holds(input: &Input, output: &Output) {
    let frame = |messages: &[Message]| {
        let frame = |message: &Message| (message.role.clone(), message.tool_calls.as_ref().map(Vec::len));
        messages.iter().map(frame).collect::<Vec<_>>()
    };
    if let (Some(old), Some(new)) = (&input.messages, &output.messages) {
        assert_eq!(frame(old), frame(new), "a rewrite changed more than texts");
    }
    if let Some(new) = output.hook_specific_output.as_ref().and_then(|it| it.updated_input.as_ref()) {
        let old = input.tool_input.as_deref().expect("there was one");
        assert!(new.keys().all(|key| old.contains_key(key)), "{new:?} has a new argument");
    }
}

/// One input for every event, with all that a contract may ask for.
fn input(event: Event) -> Input {
    thread_local!(static INPUT: RefCell<Option<Input>> = const { RefCell::new(None) });
    let call = || {
        let function = FunctionCall { name: "send".into(), arguments: r#"{"to":"a@b.c"}"#.into() };
        ToolCall { id: Some("c1".into()), kind: "function".into(), function, ..ToolCall::default() }
    };
    let make = || {
        let said = Message { tool_calls: Some(vec![call()]), ..Message::new("assistant", "") };
        let messages = [Message::new("system", "be brief"), Message::new("user", "mail a@b.c"), said];
        Input {
            model_id: Some("m".into()),
            messages: Some(messages.to_vec().into()),
            tool_name: Some("send".into()),
            tool_input: json!({"to": "a@b.c", "n": 1, "cc": ["x", "y/z"]}).as_object().cloned().map(Into::into),
            ..Input::default()
        }
    };
    let input = INPUT.with_borrow_mut(|input| input.get_or_insert_with(make).clone());
    match event {
        Event::PostInference => Input {
            output_text: Some("it is a@b.c".into()),
            output_thinking: Some("hm".into()),
            tool_calls: Some([call()].into()),
            ..input
        },
        Event::UserPromptSubmit => Input { messages: None, prompt: Some("mail a@b.c".into()), ..input },
        Event::AfterLlmCall => Input { stop_response: Some("it is a@b.c".into()), ..input },
        Event::PostToolUse => Input { tool_response: Some(Arc::new(json!("from a@b.c"))), ..input },
        _ => input,
    }
}
