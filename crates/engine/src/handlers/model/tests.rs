use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use gatehook_events::{Decision, Event, Input, OutcomeKind, Output, PermissionDecision, TokenUsage, Verdict};
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::{self, Format, ReadOptions};
use crate::executor::{BuildCause, BuildError};
use crate::registry::BuiltinResult;
use crate::{Executor, HookGroup, HooksConfig, Registry};

/// Answers in turn, and keeps what it was asked; the last answer stands for all that follow.
#[derive(Default)]
struct Fake {
    replies: Mutex<VecDeque<Result<ModelReply, HandlerError>>>,
    asked: Mutex<Vec<(String, String, Option<ResponseSchema>)>>,
}

impl Fake {
    fn saying(replies: &[&str]) -> Arc<Self> {
        Self::answering(replies.iter().map(|reply| Ok(ModelReply::new(*reply))))
    }

    fn answering(replies: impl IntoIterator<Item = Result<ModelReply, HandlerError>>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into_iter().collect()), ..Self::default() })
    }

    fn prompts(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(_, user, _)| user.clone()).collect()
    }
}

impl ModelClient for Fake {
    fn ask<'a>(
        &'a self,
        model: &'a str,
        system: &'a str,
        user: &'a str,
        schema: Option<&'a ResponseSchema>,
    ) -> Asking<'a> {
        assert!(!system.is_empty());
        self.asked.lock().unwrap().push((model.to_owned(), user.to_owned(), schema.cloned()));
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        Box::pin(async move {
            match reply {
                Some(reply) => reply,
                None => std::future::pending().await,
            }
        })
    }

    fn check(&self, model: &str) -> Result<(), String> {
        if model == "nobody/knows" { Err("nobody knows it".to_owned()) } else { Ok(()) }
    }
}

/// A model hook of an event, and its surroundings.
struct Judge {
    client: Arc<Fake>,
    registry: Registry,
    event: Event,
    definition: HookDefinition,
}

impl Judge {
    fn new(client: Arc<Fake>, event: Event, prompt: &str, schema: &str) -> Self {
        let registry = Registry::with_defaults();
        registry.register_model_client(client.clone());
        let model =
            ModelDefinition { model: "test/judge".into(), prompt: prompt.to_owned(), schema: schema.to_owned() };
        let definition = HookDefinition::new(Profile::Native, HandlerDefinition::Model(model));
        Self { client, registry, event, definition }
    }

    /// A judge of tool calls.
    fn of_tools(client: Arc<Fake>) -> Self {
        Self::new(client, Event::PreToolUse, "Judge {{ .ToolName }} {{ toJSON .ToolInput }}", PRE_TOOL_USE_DECISION)
    }

    fn under(mut self, profile: Profile) -> Self {
        self.definition.profile = profile;
        self
    }

    fn build(&self) -> Result<Executor, BuildError> {
        let env = HandlerEnv { working_dir: "/work".into(), env: Default::default() };
        let hooks = vec![self.definition.clone()];
        let groups = vec![HookGroup { event: self.event, matcher: String::new(), hooks }];
        Executor::with_registry(HooksConfig { groups }, env, &self.registry)
    }

    async fn on(&self, executor: &Executor, command: &str) -> Verdict {
        let input = json!({"session_id": "s", "tool_name": "shell", "tool_input": {"cmd": command}});
        let input: Input = serde_json::from_value(input).unwrap();
        executor.dispatch(self.event, &input, &CancellationToken::new()).await
    }

    async fn verdict(&self) -> Verdict {
        self.on(&self.build().unwrap(), "ls").await
    }

    async fn failure(&self) -> FailureKind {
        let verdict = self.verdict().await;
        match verdict.outcomes[0].kind {
            OutcomeKind::Failed(kind) => kind,
            other => panic!("{other:?}"),
        }
    }
}

fn decided(reply: &str) -> BuiltinResult {
    let shape = Shapes::default().get(PRE_TOOL_USE_DECISION).unwrap();
    (shape.read)(Event::PreToolUse, reply)
}

fn decision(reply: &str) -> Result<(PermissionDecision, String), FailureKind> {
    let output = decided(reply).map_err(|error| error.kind)?.unwrap();
    let specific = output.hook_specific_output.unwrap();
    Ok((specific.permission_decision.unwrap(), specific.permission_decision_reason.unwrap()))
}

#[test]
fn a_verdict_is_found_in_what_models_put_around_it() {
    use PermissionDecision::{Allow, Ask, Deny};
    for (reply, verdict, reason) in [
        (r#"{"decision":"deny","reason":"rm -rf"}"#, Deny, "rm -rf"),
        ("```json\n{\"decision\": \"ask\", \"reason\": \"unclear\"}\n```", Ask, "unclear"),
        ("```\n{\"decision\":\"allow\",\"reason\":\"fine\"}```", Allow, "fine"),
        ("Here you go:\n{\"decision\":\"deny\",\"reason\":\"x\"}\nthat is all", Deny, "x"),
        (r#"{"decision":" DENY ","reason":" x "}"#, Deny, "x"),
        (r#"{"Decision":"Allow","Reason":"x"}"#, Allow, "x"),
        (r#"{"decision":"allow"}"#, Allow, NO_REASON),
        (r#"{"decision":"allow","reason":null}"#, Allow, NO_REASON),
        (r#"{"decision":"allow","reason":"  "}"#, Allow, NO_REASON),
        (r#"{"decision":"ask","reason":"{braces}","confidence":0.5}"#, Ask, "{braces}"),
    ] {
        assert_eq!(decision(reply), Ok((verdict, reason.to_owned())), "{reply}");
    }
}

const NO_REASON: &str = "no reason provided";

#[test]
fn what_is_no_verdict_is_a_failure() {
    use FailureKind::{DuplicateKey, InvalidPermissionDecision, MalformedJson};
    for (reply, kind) in [
        ("", MalformedJson),
        (" \n ", MalformedJson),
        ("allow", MalformedJson),
        ("{decision: allow}", MalformedJson),
        ("[\"allow\"]", MalformedJson),
        ("}{", MalformedJson),
        (r#"{"decision":"allow""#, MalformedJson),
        (r#"{"decision":"allow"} or {"decision":"deny"}"#, MalformedJson),
        (r#"{"decision":"allow","reason":3}"#, MalformedJson),
        (r#"{"decision":"maybe","reason":"x"}"#, InvalidPermissionDecision),
        (r#"{"decision":"","reason":"x"}"#, InvalidPermissionDecision),
        (r#"{"decision":true,"reason":"x"}"#, InvalidPermissionDecision),
        (r#"{"reason":"x"}"#, InvalidPermissionDecision),
        (r#"{}"#, InvalidPermissionDecision),
        (r#"{"decision":"deny","decision":"allow"}"#, DuplicateKey),
        (r#"{"decision":"allow","Decision":"deny"}"#, DuplicateKey),
    ] {
        assert_eq!(decision(reply).unwrap_err(), kind, "{reply}");
    }
}

proptest! {
    #[test]
    fn no_reply_is_an_allow_that_does_not_say_so(reply in any::<String>()) {
        if let Ok((PermissionDecision::Allow, _)) = decision(&reply) {
            prop_assert!(reply.to_lowercase().contains("allow"));
        }
    }

    #[test]
    fn a_verdict_survives_whatever_words_stand_around_it(before in "[^{}]*", reason in any::<String>(), after in "[^{}]*") {
        let reply = format!("{before}{}{after}", json!({"decision": "deny", "reason": reason}));
        prop_assert_eq!(decision(&reply).map(|(decision, _)| decision), Ok(PermissionDecision::Deny));
    }
}

#[tokio::test]
async fn a_judge_decides_on_a_tool_call() {
    for (reply, allowed, wanted) in [
        (r#"{"decision":"deny","reason":"no"}"#, false, Decision::Deny),
        (r#"{"decision":"ask","reason":"no"}"#, true, Decision::Ask),
        (r#"{"decision":"allow","reason":"no"}"#, true, Decision::Allow),
    ] {
        let judge = Judge::of_tools(Fake::saying(&[reply]));
        let verdict = judge.verdict().await;
        assert_eq!((verdict.allowed, verdict.decision), (allowed, Some(wanted)), "{reply}");
        assert_eq!(verdict.decision_reason, "no");
        assert!(verdict.system_message.contains("no"), "{}", verdict.system_message);
        assert_eq!(&*verdict.outcomes[0].handler, "model");
    }
}

#[tokio::test]
async fn the_model_is_asked_the_rendered_prompt_and_the_schema() {
    let judge = Judge::of_tools(Fake::saying(&[r#"{"decision":"allow"}"#]));
    judge.verdict().await;
    let asked = judge.client.asked.lock().unwrap();
    let [(model, user, Some(schema))] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((model.as_str(), user.as_str()), ("test/judge", r#"Judge shell {"cmd":"ls"}"#));
    assert_eq!(schema.name, PRE_TOOL_USE_DECISION);
    assert_eq!(schema.schema["required"], json!(["decision", "reason"]));
    assert_eq!(schema.schema["additionalProperties"], false);
}

#[tokio::test]
async fn what_the_host_leaves_out_is_filled_in_before_the_prompt_is_made() {
    let judge = Judge::new(Fake::saying(&["ok"]), Event::TurnStart, "{{ .HookEventName }} in {{ .Cwd }}", "");
    judge.verdict().await;
    assert_eq!(judge.client.prompts(), ["turn_start in /work"]);
}

#[tokio::test]
async fn without_a_schema_the_reply_is_context() {
    for (reply, context) in
        [("  be brief\n", "be brief"), (" \n", ""), (r#"{"decision":"block"}"#, r#"{"decision":"block"}"#)]
    {
        let judge = Judge::new(Fake::saying(&[reply]), Event::TurnStart, "x", "");
        let verdict = judge.verdict().await;
        assert_eq!((verdict.additional_context.as_str(), verdict.allowed), (context, true), "{reply}");
        assert_eq!(judge.client.asked.lock().unwrap()[0].2, None);
    }
}

#[tokio::test]
async fn a_judge_that_cannot_judge_refuses() {
    let down = HandlerError::new(FailureKind::Unreachable, "rate limit");
    for (client, kind) in [
        (Fake::answering([Err(down)]), FailureKind::Unreachable),
        (Fake::saying(&["<html>busy</html>"]), FailureKind::MalformedJson),
        (Fake::saying(&[""]), FailureKind::MalformedJson),
    ] {
        for profile in [Profile::Native, Profile::DockerAgent, Profile::DockerAgentV158] {
            let judge = Judge::of_tools(client.clone()).under(profile);
            let verdict = judge.verdict().await;
            assert_eq!(
                (verdict.allowed, verdict.exit_code, verdict.decision),
                (false, -1, None),
                "{profile:?} {kind:?}"
            );
            assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(kind), "{profile:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_never_answers_has_its_profiles_time() {
    for (profile, seconds) in [(Profile::Native, 30), (Profile::DockerAgent, 60)] {
        let judge = Judge::of_tools(Arc::default()).under(profile);
        let start = tokio::time::Instant::now();
        assert_eq!(judge.failure().await, FailureKind::Timeout);
        assert_eq!(start.elapsed().as_secs(), seconds, "{profile:?}");
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_is_not_kept() {
    let judge = Judge::of_tools(Arc::default());
    let executor = judge.build().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let verdict = executor.dispatch(judge.event, &Input::default(), &cancel).await;
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::Cancelled));
}

#[tokio::test]
async fn the_same_question_is_asked_once() {
    let reply = r#"{"decision":"deny","reason":"no"}"#;
    let judge = Judge::of_tools(Fake::answering([Ok(ModelReply { cost: Some(0.5), ..ModelReply::new(reply) })]));
    let executor = judge.build().unwrap();
    let first = judge.on(&executor, "ls").await;
    let again = judge.on(&executor, "ls").await;
    assert_eq!((first.outcomes[0].recalled, again.outcomes[0].recalled), (false, true));
    assert_eq!((first.outcomes[0].cost, again.outcomes[0].cost), (Some(0.5), None));
    assert_eq!((again.allowed, again.message.as_str()), (false, "no"));
    judge.on(&executor, "pwd").await;
    assert_eq!(judge.client.prompts().len(), 2);
    judge.on(&judge.build().unwrap(), "ls").await;
    assert_eq!(judge.client.prompts().len(), 3, "another hook has its own memory");
}

#[tokio::test]
async fn what_is_no_verdict_is_asked_again() {
    let judge = Judge::of_tools(Fake::saying(&["busy", r#"{"decision":"allow"}"#]));
    let executor = judge.build().unwrap();
    assert!(!judge.on(&executor, "ls").await.allowed);
    assert!(judge.on(&executor, "ls").await.allowed);
    let poet = Judge::new(Fake::saying(&["a rhyme"]), Event::TurnStart, "Say something", "");
    let executor = poet.build().unwrap();
    poet.on(&executor, "").await;
    poet.on(&executor, "").await;
    assert_eq!(poet.client.prompts().len(), 2, "plain text is no verdict");
}

#[tokio::test]
async fn the_outcome_says_what_a_judge_took_even_where_nobody_can_read_it() {
    let usage = Some(TokenUsage { input_tokens: 120, output_tokens: 7 });
    for text in [r#"{"decision":"allow"}"#, "no JSON"] {
        let reply = ModelReply { text: text.to_owned(), usage, cost: Some(0.25) };
        let verdict = Judge::of_tools(Fake::answering([Ok(reply)])).verdict().await;
        let outcome = &verdict.outcomes[0];
        assert_eq!((outcome.usage, outcome.cost), (usage, Some(0.25)), "{text}");
        let json = serde_json::to_value(outcome).unwrap();
        assert_eq!(json["usage"], json!({"input_tokens": 120, "output_tokens": 7}));
    }
    let verdict = Judge::of_tools(Fake::saying(&[r#"{"decision":"allow"}"#])).verdict().await;
    assert!(serde_json::to_value(&verdict.outcomes[0]).unwrap().get("cost").is_none(), "unpriced is not free");
}

#[tokio::test]
async fn a_schema_is_looked_for_when_it_is_needed() {
    let judge = Judge::new(Fake::saying(&["NO"]), Event::UserPromptSubmit, "x", "yes_or_no");
    let executor = judge.build().unwrap();
    let verdict = judge.on(&executor, "").await;
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::UnknownSchema));
    assert!(!verdict.allowed && judge.client.prompts().is_empty());
    let shape = |_: Event, reply: &str| Ok((reply == "NO").then(|| Output::block("the judge says no")));
    judge.registry.register_response_shape("yes_or_no", shape, None).unwrap();
    let verdict = judge.on(&executor, "").await;
    assert_eq!((verdict.allowed, verdict.message.as_str()), (false, "the judge says no"));
}

#[tokio::test]
async fn what_is_wrong_with_a_judge_is_found_at_load_and_docker_agents_when_it_should_run() {
    let definition = |model: &str, prompt: &str| ModelDefinition {
        model: model.to_owned(),
        prompt: prompt.to_owned(),
        schema: PRE_TOOL_USE_DECISION.to_owned(),
    };
    for (model, field, kind) in [
        (definition("m", "{{ .ToolName "), "prompt", FailureKind::TemplateParse),
        (definition("m", "{{ shout .ToolName }}"), "prompt", FailureKind::TemplateParse),
        (definition("m", ""), "prompt", FailureKind::HandlerError),
        (definition("", "x"), "model", FailureKind::HandlerError),
        (definition("nobody/knows", "x"), "model", FailureKind::HandlerError),
    ] {
        let mut judge = Judge::of_tools(Fake::saying(&[r#"{"decision":"allow"}"#]));
        judge.definition.handler = HandlerDefinition::Model(model.clone());
        match judge.build().unwrap_err().cause {
            BuildCause::Definition(error) => assert_eq!(error.field, field, "{model:?}"),
            other => panic!("{other}"),
        }
        let judge = judge.under(Profile::DockerAgent);
        assert_eq!(judge.failure().await, kind, "{model:?}");
        assert!(!judge.verdict().await.allowed, "{model:?}");
    }
}

#[tokio::test]
async fn a_prompt_that_names_what_no_input_has_is_a_failure() {
    let judge = Judge::new(Fake::saying(&["x"]), Event::PreToolUse, "{{ .Nothing }}", PRE_TOOL_USE_DECISION);
    assert_eq!(judge.failure().await, FailureKind::TemplateRender);
}

#[tokio::test]
async fn without_a_client_there_are_no_judges() {
    let mut judge = Judge::of_tools(Arc::default());
    judge.registry = Registry::with_defaults();
    let error = judge.build().unwrap_err().to_string();
    assert_eq!(error, "pre_tool_use hook \"model\": there is nothing here that can ask a model");
    assert_eq!(judge.under(Profile::DockerAgent).failure().await, FailureKind::HandlerError);
}

/// The first problem of a native file with this hook: its kind, line and column.
fn problem(event: &str, fields: &str) -> Option<(&'static str, usize, usize)> {
    let text = format!("hooks:\n  {event}:\n    - type: model\n      model: test/judge\n{fields}");
    let schemas = [PRE_TOOL_USE_DECISION];
    let options = ReadOptions { schemas: Some(&schemas), ..ReadOptions::default() };
    let error = config::parse("f.yaml", &text, Format::Yaml, &options).err()?;
    let problem = &error.diagnostics[0];
    let (line, column) = error.position(problem.span.clone()?.start);
    Some((problem.kind.name(), line, column))
}

#[test]
fn a_file_with_a_judge_that_could_not_judge_is_told_at_its_place() {
    let decision = "      schema: pre_tool_use_decision\n";
    for (event, fields, found) in [
        ("pre_tool_use", format!("      prompt: ok\n{decision}"), None),
        ("pre_inference", format!("      prompt: ok\n{decision}"), None),
        ("turn_start", "      prompt: ok\n".to_owned(), None),
        (
            "pre_tool_use",
            format!("      prompt: \"ab {{{{ .A | shout }}}}\"\n{decision}"),
            Some(("invalid_template", 5, 27)),
        ),
        (
            "pre_tool_use",
            format!("      prompt: |\n        one\n        a {{{{ x }}}}\n{decision}"),
            Some(("invalid_template", 7, 14)),
        ),
        (
            "pre_tool_use",
            "      prompt: ok\n      schema: pre_tool_use_decison\n".to_owned(),
            Some(("unknown_schema", 6, 15)),
        ),
        ("pre_tool_use", "      prompt: ok\n".to_owned(), Some(("misplaced_field", 3, 13))),
        ("user_prompt_submit", format!("      prompt: ok\n{decision}"), Some(("misplaced_field", 6, 15))),
    ] {
        assert_eq!(problem(event, &fields), found, "{event}\n{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_has_its_own_time() {
    let mut judge = Judge::of_tools(Arc::default());
    judge.definition.timeout = Some(Duration::from_millis(1500));
    let start = tokio::time::Instant::now();
    assert_eq!(judge.failure().await, FailureKind::Timeout);
    assert_eq!(start.elapsed().as_millis(), 1500);
}
