//! Hooks of the wire around a model's calls.

use gatehook_engine::events::{Input, Output, Permission};
use serde_json::json;

use super::world::*;
use crate::model::*;

fn says(text: &str) -> Vec<String> {
    let chunk = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let words = text.split_inclusive(' ').map(|word| chunk(json!({"index": 0, "delta": {"content": word}})));
    let end = chunk(json!({"index": 0, "delta": {}, "finish_reason": "stop"})) + "data: [DONE]\n\n";
    words.chain([end]).collect()
}

async fn host(text: &str) -> Host {
    let said = says(text);
    Host::start(vec![Served::events(&said.iter().map(String::as_str).collect::<Vec<_>>())]).await
}

fn redacts(input: &Input) -> Option<Output> {
    let output_text = Some(input.output_text.as_deref()?.replace("secret", "******").into());
    Some(Output { permission: Some(Permission::Modify), output_text, ..Output::default() })
}

#[tokio::test]
async fn a_question_that_a_hook_refuses_is_not_asked() {
    let hooks = Hooks::new().on(Event::PreInference, |hook| hook, |_| Some(Output::block("not today")));
    let host = host("Hello.").await;
    let question = Question { guard: hooks.guard(), ..Question::new("x") };
    let error = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap_err();
    let ModelError::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!(refusal.message, "not today");
    assert!(host.asked("/v1/chat/completions").is_empty());
    assert_eq!(*question.listener.judged.lock().unwrap(), [(Event::PreInference, false)]);
}

#[tokio::test]
async fn hooks_see_the_question_of_the_session_and_may_rewrite_it() {
    for format in [Format::Ollama, Format::OpenAi, Format::Anthropic] {
        let hooks = Hooks::new().on(
            Event::PreInference,
            |hook| hook,
            |input| {
                let messages = input.messages.as_deref()?.iter().map(|message| Message {
                    content: message.content.as_deref().map(|text| text.replace("secret", "******").into()),
                    ..message.clone()
                });
                let messages = Some(messages.collect());
                Some(Output { permission: Some(Permission::Modify), messages, ..Output::default() })
            },
        );
        let seen = hooks.seen.clone();
        let host = Host::start(vec![Served::error(500, "{}")]).await;
        let question = Question { guard: hooks.guard(), ..Question::new("my secret") };
        question.ask(&host.model("p/m", format)).await.unwrap_err();
        let asked = host.asked(format.route().path())[0].to_string();
        assert!(asked.contains("my ******") && !asked.contains("secret"), "{asked}");
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].1.session_id.as_deref(), Some("s-1"));
        assert_eq!(seen[0].1.model_id.as_deref(), Some("m"));
    }
}

#[tokio::test]
async fn an_answer_is_told_only_as_hooks_leave_it() {
    let hooks = Hooks::new().on(Event::PostInference, |hook| hook, redacts);
    let host = host("The secret is out.").await;
    let question = Question { guard: hooks.guard(), ..Question::new("x") };
    let reply = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap();
    assert_eq!(reply.message.content.as_deref(), Some("The ****** is out."));
    assert_eq!(question.listener.all(false), "The ****** is out.");
    assert!(question.listener.judged.lock().unwrap().contains(&(Event::PostInference, true)));
}

#[tokio::test]
async fn an_answer_that_a_hook_refuses_is_not_told() {
    let refuses =
        |input: &Input| input.output_text.as_deref()?.contains("secret").then(|| Output::block("it says too much"));
    let hooks = Hooks::new().on(Event::PostInference, |hook| hook, refuses);
    let host = host("The secret is out.").await;
    let question = Question { guard: hooks.guard(), ..Question::new("x") };
    let error = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap_err();
    assert!(matches!(&error, ModelError::Refused(no) if no.message == "it says too much"), "{error}");
    assert!(!question.listener.all(false).contains("secret"));
}

#[tokio::test]
async fn what_is_no_stream_passes_the_same_hooks() {
    let hooks = Hooks::new().on(Event::PostInference, |hook| hook, redacts);
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "a secret"}}]});
    let host = Host::start(vec![Served::stream("application/json", &[&body.to_string()])]).await;
    let question = Question { guard: hooks.guard(), ..Question::new("x") };
    let reply = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap();
    assert_eq!(reply.message.content.as_deref(), Some("a ******"));
    assert_eq!(question.listener.all(false), "a ******");
}

#[tokio::test]
async fn tool_calls_and_results_are_not_judged_on_the_wire() {
    let never = |_: &Input| Some(Output::block("never"));
    let hooks = Hooks::new()
        .on(Event::PostInference, |hook| hook, |_| None)
        .on(Event::PreToolUse, |hook| hook, never)
        .on(Event::ToolGuard, |hook| hook, never)
        .on(Event::ToolResponseTransform, |hook| hook, |_| None);
    let seen = hooks.seen.clone();
    let called = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "delta": {"tool_calls":
        [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}]}}]});
    let host = Host::start(vec![Served::events(&[&format!("data: {called}\n\n"), "data: [DONE]\n\n"])]).await;
    let mut question = Question { guard: hooks.guard(), ..Question::new("x") };
    let result = json!({"role": "tool", "tool_call_id": "z", "content": "text"});
    question.messages.push(serde_json::from_value(result).unwrap());
    let reply = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap();
    assert_eq!(reply.message.tool_calls.map(|calls| calls.len()), Some(1));
    assert!(seen.lock().unwrap().iter().all(|(event, _)| *event == Event::PostInference));
}

#[test]
fn hooks_of_tools_alone_are_no_guard_of_an_agents_wire() {
    let hooks = Hooks::new().on(Event::PreToolUse, |hook| hook, |_| None);
    assert!(hooks.guard().is_none());
}

#[tokio::test]
async fn hooks_that_judge_beside_hold_the_answer_back() {
    let concurrent = |hook| gatehook_engine::HookDefinition { concurrent: true, ..hook };
    let hooks = Hooks::new().on(Event::PreInference, concurrent, |_| Some(Output::block("no")));
    let host = host("Hello.").await;
    let question = Question { guard: hooks.guard(), ..Question::new("x") };
    let error = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused(_)), "{error}");
    assert_eq!(question.listener.all(false), "");
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_without_asking_hooks_again() {
    let concurrent = |hook| gatehook_engine::HookDefinition { concurrent: true, ..hook };
    let hooks =
        Hooks::new().on(Event::PreInference, |hook| hook, |_| None).on(Event::PreInference, concurrent, |_| None);
    let seen = hooks.seen.clone();
    let said = says("Hello.").concat();
    let busy = Served::error(529, "{}").with("retry-after: 0");
    let host = Host::start(vec![busy, Served::events(&[&said])]).await;
    let question = Question { guard: hooks.guard(), ..Question::new("x") };
    let reply = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap();
    assert_eq!(reply.message.content.as_deref(), Some("Hello."));
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn values_that_a_hook_takes_out_come_back_in_the_answer() {
    let hooks = Hooks::new().on(
        Event::PreInference,
        |hook| hook,
        |input| {
            let messages = input.messages.as_deref()?.iter().map(|message| Message {
                content: message.content.as_deref().map(|text| text.replace("jane@x.org", "<EMAIL_1>").into()),
                ..message.clone()
            });
            Some(Output {
                permission: Some(Permission::Modify),
                messages: Some(messages.collect()),
                placeholders: vec![("<EMAIL_1>".into(), "jane@x.org".into())],
                ..Output::default()
            })
        },
    );
    let host = host("Write to <EMAIL_1> soon.").await;
    let question = Question { guard: hooks.guard(), ..Question::new("I am jane@x.org") };
    let reply = question.ask(&host.model("p/m", Format::OpenAi)).await.unwrap();
    assert_eq!(reply.message.content.as_deref(), Some("Write to jane@x.org soon."));
    assert!(host.asked("/v1/chat/completions")[0].to_string().contains("I am <EMAIL_1>"));
}
