//! Model judges. A prompt's template is a text or an error with its place, whatever the input holds; a reply lets a call
//! pass only where it says so.
//!
//! The first byte is `0` for a template, behind which a line `---` may stand and an input as JSON; `1` for a reply.

#![no_main]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gatehook_engine::definition::ModelDefinition;
use gatehook_engine::handlers::model::{Asking, ModelClient, ModelReply, PRE_TOOL_USE_DECISION, ResponseSchema};
use gatehook_engine::template::{MAX_RENDERED, Missing, Template};
use gatehook_engine::{Executor, HandlerDefinition, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
use gatehook_events::{Event, Input, Profile};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    if first % 2 == 0 { template(&text) } else { reply(&text) }
});

fn template(text: &str) {
    let (text, input) = text.split_once("\n---\n").unwrap_or((text, ""));
    // It ends, but a million steps take seconds here, where each branch is counted.
    let digits = |text: &str| text.split(|char: char| !char.is_ascii_digit()).map(str::len).max();
    if text.contains("range") && digits(text) > Some(4) {
        return;
    }
    let input = serde_json::from_str(input).unwrap_or_else(|_| {
        let messages = json!([{"role": "user", "content": "{{ .Prompt }}"}, {"role": "assistant", "tool_calls": []}]);
        json!({"tool_name": "shell", "tool_input": {"cmd": "rm -rf /", "n": [1, -2.5, null]}, "messages": messages})
    });
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => {
            assert!(text.contains("{{"), "{error} in a text without holes");
            return assert!(text.is_char_boundary(error.offset) && !error.message.is_empty(), "{error:?}");
        }
    };
    if let Err(error) = template.check_names(&["text"]) {
        assert!(text.is_char_boundary(error.offset), "{error:?}");
    }
    let (strict, lenient) = (template.render(&input, Missing::Error), template.render(&input, Missing::Zero));
    match (&strict, &lenient) {
        (Ok(strict), Ok(lenient)) => assert_eq!(strict, lenient, "nothing was missing"),
        (Ok(_), Err(error)) => panic!("{error:?} where a missing key is none"),
        _ => {}
    }
    for text in [strict, lenient].into_iter().flatten() {
        assert!(text.len() <= MAX_RENDERED);
    }
    if !text.contains("{{") {
        assert_eq!(template.render(&input, Missing::Error).as_deref(), Ok(text));
    }
}

fn reply(text: &str) {
    let verdict = JUDGE.with(|judge| judge.ask(text));
    let said = text.find('{').zip(text.rfind('}')).and_then(|(first, last)| text.get(first..=last));
    let said = said.and_then(|said| serde_json::from_str::<Map<String, Value>>(said).ok()).unwrap_or_default();
    let mut decisions = said.iter().filter(|(key, _)| key.eq_ignore_ascii_case("decision"));
    let decision = decisions.next().and_then(|(_, decision)| decision.as_str()).unwrap_or_default();
    let says = |word: &str| decision.trim().eq_ignore_ascii_case(word);
    assert!(!verdict.allowed || says("allow") || says("ask"), "{text:?} lets a call pass");
    assert!(!verdict.allowed || decisions.next().is_none(), "{text:?} says two things");
}

thread_local!(static JUDGE: Judge = Judge::new());

/// A hook that asks a model, and what the model will say.
struct Judge {
    executor: Executor,
    runtime: Runtime,
    model: Arc<Model>,
}

#[derive(Default)]
struct Model(Mutex<String>);

impl ModelClient for Model {
    fn ask<'a>(&'a self, _: &'a str, _: &'a str, _: &'a str, _: Option<&'a ResponseSchema>) -> Asking<'a> {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async { Ok(ModelReply::new(text)) })
    }
}

impl Judge {
    fn new() -> Self {
        let model = Arc::new(Model::default());
        let registry = Registry::with_defaults();
        registry.register_model_client(model.clone());
        // What was judged once is remembered; so each call is another.
        let prompt = "May it? {{ .ToolUseID }}".to_owned();
        let judge = ModelDefinition { model: "m/1".to_owned(), prompt, schema: PRE_TOOL_USE_DECISION.to_owned() };
        let hook = HookDefinition::new(Profile::Native, HandlerDefinition::Model(judge));
        let group = HookGroup { event: Event::PreToolUse, matcher: String::new(), hooks: vec![hook] };
        let env = HandlerEnv { working_dir: PathBuf::from("/"), env: [].into() };
        let executor = Executor::with_registry(HooksConfig { groups: vec![group] }, env, &registry);
        let runtime = Builder::new_current_thread().enable_time().build();
        Self { executor: executor.expect("it is a hook"), runtime: runtime.expect("there is a clock"), model }
    }

    fn ask(&self, reply: &str) -> gatehook_events::Verdict {
        text_of(&self.model).push_str(reply);
        let call = ID.with(|id| id.replace(id.get() + 1));
        let input =
            Input { tool_name: Some("shell".into()), tool_use_id: Some(call.to_string().into()), ..Input::default() };
        let never = CancellationToken::new();
        let verdict = self.runtime.block_on(self.executor.dispatch(Event::PreToolUse, &input, &never));
        text_of(&self.model).clear();
        verdict
    }
}

thread_local!(static ID: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

fn text_of(model: &Model) -> std::sync::MutexGuard<'_, String> {
    model.0.lock().unwrap_or_else(PoisonError::into_inner)
}
