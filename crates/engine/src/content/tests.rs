use std::sync::Mutex;

use gatehook_events::{FailureKind, HookSpecificOutput, OutcomeKind, Rewritten, Verb, Verdict};
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::handler::HandlerError;
use crate::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};

use super::*;

/// What a hook was shown, run by run.
type Runs = Arc<Mutex<Vec<Vec<String>>>>;

/// Remembers what it lets pass.
fn remembering(name: &str) -> HookDefinition {
    HookDefinition { cache: Some(Cache::Content), ..HookDefinition::builtin(name, &[]) }
}

/// A guard over messages: `bad` is denied, `odd` is asked about, `broken` breaks it, `noted` gets a notice, `extra`
/// makes it add a message; `secret` is rewritten.
fn guard(registry: &Registry, runs: Runs) {
    let judge = move |input: &Input| {
        let messages = input.messages.as_deref().unwrap_or_default();
        runs.lock().unwrap().push(messages.iter().map(text).collect());
        let has = |word: &str| messages.iter().any(|message| text(message).contains(word));
        if has("broken") {
            return Err(HandlerError::new(FailureKind::HandlerError, "it is broken"));
        }
        let verdict = |permission| Ok(Some(Output { permission: Some(permission), ..Output::default() }));
        if has("bad") {
            return verdict(Permission::Deny);
        }
        if has("odd") {
            return verdict(Permission::Ask);
        }
        let mut rewritten: Vec<Message> = messages.iter().map(rewrite).collect();
        if has("extra") {
            rewritten.push(Message::new("user", "more"));
        }
        Ok(Some(Output {
            messages: (rewritten != messages).then_some(rewritten),
            system_message: has("noted").then(|| "look".to_owned()),
            ..Output::default()
        }))
    };
    registry.register_builtin("guard", move |_context, input, _args| judge(input)).unwrap();
}

fn text(message: &Message) -> String {
    message.content.as_deref().unwrap_or_default().to_owned()
}

fn rewrite(message: &Message) -> Message {
    Message { content: Some(text(message).replace("secret", "***").into()), ..message.clone() }
}

fn executor(event: Event, hooks: Vec<HookDefinition>, registry: &Registry) -> Executor {
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks }] };
    let env = HandlerEnv { working_dir: "/".into(), env: Default::default() };
    Executor::with_registry(config, env, registry).unwrap()
}

fn conversation(texts: &[&str]) -> Input {
    let messages = texts.iter().map(|text| Message::new("user", text)).collect();
    Input { messages: Some(messages), ..Input::default() }
}

async fn judged(executor: &Executor, event: Event, input: &Input) -> Verdict {
    executor.dispatch(event, input, &CancellationToken::new()).await
}

fn texts(verdict: &Verdict) -> Option<Vec<String>> {
    Some(verdict.rewritten.messages.as_deref()?.iter().map(text).collect())
}

/// A remembering guard on `pre_inference`, and what it is shown.
fn guarded() -> (Executor, Runs) {
    let (registry, runs) = (Registry::new(), Runs::default());
    guard(&registry, runs.clone());
    (executor(Event::PreInference, vec![remembering("guard")], &registry), runs)
}

/// What the guard is shown in each of these turns.
async fn shown(turns: &[&[&str]]) -> Vec<Vec<String>> {
    let (executor, runs) = guarded();
    for turn in turns {
        judged(&executor, Event::PreInference, &conversation(turn)).await;
    }
    std::mem::take(&mut runs.lock().unwrap())
}

#[tokio::test]
async fn a_resent_conversation_shows_a_hook_only_what_is_new() {
    let turns: [&[&str]; 4] = [&["a"], &["a", "b", "c"], &["a", "b", "c"], &["c", "d", "a"]];
    assert_eq!(shown(&turns).await, [vec!["a"], vec!["b", "c"], vec!["d"]]);
}

#[tokio::test]
async fn a_hook_that_says_nothing_of_it_is_shown_everything() {
    let (registry, runs) = (Registry::new(), Runs::default());
    guard(&registry, runs.clone());
    let executor = executor(Event::PreInference, vec![HookDefinition::builtin("guard", &[])], &registry);
    for _ in 0..2 {
        judged(&executor, Event::PreInference, &conversation(&["a"])).await;
    }
    assert_eq!(*runs.lock().unwrap(), [["a"], ["a"]]);
}

#[tokio::test]
async fn what_was_rewritten_before_is_rewritten_again_without_the_hook() {
    let (executor, runs) = guarded();
    for (turn, want) in [
        (vec!["a", "secret 1"], vec!["a", "*** 1"]),
        (vec!["a", "secret 1", "b"], vec!["a", "*** 1", "b"]),
        (vec!["a", "secret 1", "b", "secret 2"], vec!["a", "*** 1", "b", "*** 2"]),
        (vec!["secret 2", "secret 1"], vec!["*** 2", "*** 1"]),
    ] {
        let verdict = judged(&executor, Event::PreInference, &conversation(&turn)).await;
        assert_eq!(
            (texts(&verdict).unwrap(), verdict.verb),
            (want.into_iter().map(Into::into).collect(), Verb::Modify)
        );
    }
    assert_eq!(*runs.lock().unwrap(), [vec!["a", "secret 1"], vec!["b"], vec!["secret 2"]]);
}

#[tokio::test]
async fn a_hook_that_need_not_run_is_in_the_record() {
    let (executor, _) = guarded();
    let input = conversation(&["a"]);
    let recalled = async || judged(&executor, Event::PreInference, &input).await.outcomes[0].recalled;
    assert_eq!((recalled().await, recalled().await), (false, true));
}

#[tokio::test]
async fn only_a_verdict_that_lets_pass_is_remembered() {
    for word in ["bad", "odd", "broken"] {
        let (executor, runs) = guarded();
        for turn in [&["a", word], &["a", word]] {
            let verdict = judged(&executor, Event::PreInference, &conversation(turn)).await;
            assert!(verdict.verb > Verb::Modify, "{word}: {verdict:?}");
        }
        judged(&executor, Event::PreInference, &conversation(&["a"])).await;
        assert_eq!(*runs.lock().unwrap(), [vec!["a", word], vec!["a", word], vec!["a"]], "{word}");
    }
}

#[tokio::test]
async fn what_is_denied_in_a_later_turn_is_denied_again() {
    let (executor, runs) = guarded();
    judged(&executor, Event::PreInference, &conversation(&["a"])).await;
    for _ in 0..2 {
        let verdict = judged(&executor, Event::PreInference, &conversation(&["a", "bad"])).await;
        assert_eq!(verdict.verb, Verb::Deny);
    }
    assert_eq!(*runs.lock().unwrap(), [["a"], ["bad"], ["bad"]]);
}

#[tokio::test]
async fn a_notice_is_given_in_each_turn() {
    let turns: [&[&str]; 2] = [&["noted"], &["noted"]];
    assert_eq!(shown(&turns).await, [["noted"], ["noted"]]);
}

#[tokio::test]
async fn a_hook_whose_reply_cannot_be_put_back_is_asked_for_the_whole_and_remembers_nothing() {
    let (executor, runs) = guarded();
    for turn in [vec!["a", "secret"], vec!["a", "secret", "extra"], vec!["a", "secret", "extra"]] {
        let verdict = judged(&executor, Event::PreInference, &conversation(&turn)).await;
        assert_eq!(texts(&verdict).unwrap().last().unwrap() == "more", turn.len() == 3, "{turn:?}");
    }
    let whole = vec!["a", "secret", "extra"];
    let runs = runs.lock().unwrap();
    assert_eq!(*runs, [vec!["a", "secret"], vec!["extra"], whole.clone(), vec!["extra"], whole]);
}

#[tokio::test]
async fn a_rewrite_that_the_host_could_not_make_is_not_remembered() {
    let (executor, runs) = guarded();
    let cancel = CancellationToken::new();
    let hold = |_: &Rewritten| Err("signed".to_owned());
    for _ in 0..2 {
        let verdict = executor.dispatch_held(Event::PreInference, &conversation(&["secret"]), &cancel, &hold).await;
        assert_eq!(verdict.verb, Verb::ModifyUnsupported);
    }
    assert_eq!(runs.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_later_hook_sees_the_remembered_rewrite() {
    let (registry, runs) = (Registry::new(), Runs::default());
    guard(&registry, Runs::default());
    let seen = runs.clone();
    let see = move |input: &Input| {
        seen.lock().unwrap().push(input.messages.iter().flat_map(|all| all.iter()).map(text).collect())
    };
    registry
        .register_builtin("see", move |_context, input, _args| {
            see(input);
            Ok(None)
        })
        .unwrap();
    let executor = executor(Event::PreInference, vec![remembering("guard"), remembering("see")], &registry);
    judged(&executor, Event::PreInference, &conversation(&["a", "secret"])).await;
    judged(&executor, Event::PreInference, &conversation(&["a", "secret", "b"])).await;
    assert_eq!(*runs.lock().unwrap(), [vec!["a", "***"], vec!["b"]]);
}

#[tokio::test]
async fn for_somebody_else_and_with_other_tools_it_is_judged_anew() {
    let (executor, runs) = guarded();
    let input = conversation(&["a"]);
    let elsewhere = [
        Input { model_id: Some("other".into()), ..input.clone() },
        Input { client: Some(Arc::new(json!({"key_name": "guest"}))), ..input.clone() },
        Input { tools: Some(Arc::new(json!([{"name": "shell"}]))), ..input.clone() },
        Input { approval: Some("yes".into()), ..input.clone() },
    ];
    judged(&executor, Event::PreInference, &input).await;
    for other in &elsewhere {
        judged(&executor, Event::PreInference, other).await;
    }
    judged(&executor, Event::PreInference, &Input { request_id: Some("2".into()), ..input }).await;
    assert_eq!(runs.lock().unwrap().len(), 1 + elsewhere.len());
}

#[tokio::test]
async fn builtins_that_judge_by_content_remember_by_themselves() {
    let registry = Registry::with_defaults();
    let hooks =
        vec![HookDefinition::builtin("redact_secrets", &[]), HookDefinition::builtin("block_patterns", &["falcon"])];
    let executor = executor(Event::PreInference, hooks, &registry);
    let token = format!("ghp_{}", "0123456789abcdefghijklmnopqrstuvwxyz");
    let mut input = conversation(&["a", &token]);
    for turn in 0..3 {
        let verdict = judged(&executor, Event::PreInference, &input).await;
        assert_eq!(texts(&verdict).unwrap()[1], "[REDACTED]", "{turn}");
    }
    // It looks at more than messages.
    input.tools = Some(Arc::new(json!([{"description": "falcon"}])));
    assert_eq!(judged(&executor, Event::PreInference, &input).await.verb, Verb::Deny);
}

#[tokio::test]
async fn messages_of_an_agent_are_remembered_too() {
    let (registry, runs) = (Registry::new(), Runs::default());
    guard(&registry, runs.clone());
    let executor = executor(Event::BeforeLlmCall, vec![remembering("guard")], &registry);
    for (iteration, turn) in [(1, vec!["secret"]), (2, vec!["secret", "b"])] {
        let input = Input { iteration: Some(iteration), ..conversation(&turn) };
        assert_eq!(texts(&judged(&executor, Event::BeforeLlmCall, &input).await).unwrap()[0], "***");
    }
    assert_eq!(*runs.lock().unwrap(), [["secret"], ["b"]]);
}

fn tool_result(id: &str) -> Input {
    serde_json::from_value(json!({"tool_name": "read", "tool_use_id": id, "tool_response": "old"})).unwrap()
}

#[tokio::test]
async fn a_tool_result_that_was_judged_is_rewritten_without_the_hook() {
    for (cache, wanted) in [(Some(Cache::Content), vec!["1", "2"]), (None, vec!["1", "2", "1"])] {
        let (registry, runs) = (Registry::new(), Runs::default());
        let log = runs.clone();
        let replace = move |input: &Input| {
            log.lock().unwrap().push(vec![input.tool_use_id.as_deref().unwrap().to_owned()]);
            Output::specific(HookSpecificOutput { updated_tool_response: Some("new".into()), ..Default::default() })
        };
        registry.register_builtin("replace", move |_context, input, _args| Ok(Some(replace(input)))).unwrap();
        let hook = HookDefinition { cache, ..HookDefinition::builtin("replace", &[]) };
        let executor = executor(Event::ToolResponseTransform, vec![hook], &registry);
        for id in ["1", "2", "1"] {
            let verdict = judged(&executor, Event::ToolResponseTransform, &tool_result(id)).await;
            assert_eq!(verdict.rewritten.tool_response.as_deref(), Some(&json!("new")), "{cache:?} {id}");
        }
        assert_eq!(runs.lock().unwrap().concat(), wanted, "{cache:?}");
    }
}

#[tokio::test]
async fn a_failure_on_a_tool_result_is_tried_again() {
    let registry = Registry::new();
    let broken = || Err(HandlerError::new(FailureKind::HandlerError, "no"));
    registry.register_builtin("broken", move |_context, _input, _args| broken()).unwrap();
    let executor = executor(Event::ToolResponseTransform, vec![remembering("broken")], &registry);
    for _ in 0..2 {
        let verdict = judged(&executor, Event::ToolResponseTransform, &tool_result("1")).await;
        assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::HandlerError));
    }
}

/// Conversations as they come, one after another: each goes on from an earlier one, or begins anew.
fn any_turns() -> impl Strategy<Value = Vec<Vec<&'static str>>> {
    let word = prop_oneof![
        6 => prop_oneof![Just("a"), Just("b"), Just("c"), Just("d")],
        3 => prop_oneof![Just("secret 1"), Just("secret 2")],
        1 => prop_oneof![Just("bad"), Just("odd"), Just("broken"), Just("noted"), Just("extra")],
    ];
    let turn = (0..4_usize, prop::collection::vec(word, 0..12));
    prop::collection::vec(turn, 1..8).prop_map(|turns| {
        let mut all: Vec<Vec<&str>> = Vec::new();
        for (back, new) in turns {
            let mut turn = all.iter().rev().nth(back).cloned().unwrap_or_default();
            turn.extend(new);
            all.push(turn);
        }
        all
    })
}

fn run(future: impl Future<Output = Verdict>) -> Verdict {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn the_verdict_is_that_of_a_hook_that_remembers_nothing(turns in any_turns()) {
        let (remembers, _) = guarded();
        let (registry, runs) = (Registry::new(), Runs::default());
        guard(&registry, runs);
        let forgets = executor(Event::PreInference, vec![HookDefinition::builtin("guard", &[])], &registry);
        for turn in &turns {
            let input = conversation(turn);
            let verdict = run(judged(&remembers, Event::PreInference, &input));
            let wanted = run(judged(&forgets, Event::PreInference, &input));
            let part = |verdict: &Verdict| {
                let kinds: Vec<_> = verdict.outcomes.iter().map(|outcome| outcome.kind).collect();
                (verdict.verb, verdict.allowed, texts(verdict), verdict.system_message.clone(), kinds)
            };
            prop_assert_eq!(part(&verdict), part(&wanted), "{:?} after {:?}", turn, turns);
        }
    }
}

#[tokio::test]
async fn blocks_of_messages_are_known_by_one_look() {
    let (executor, runs) = guarded();
    let texts: Vec<String> = (0..BLOCK * 3 + 5).map(|number| format!("secret {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (turn, new) in [(BLOCK + 3, BLOCK + 3), (BLOCK * 3, BLOCK * 2 - 3), (BLOCK * 3 + 5, 5), (BLOCK * 2, 0)] {
        let turn = texts.get(..turn).unwrap();
        let verdict = judged(&executor, Event::PreInference, &conversation(turn)).await;
        let wanted: Vec<String> = turn.iter().map(|text| text.replace("secret", "***")).collect();
        assert_eq!(self::texts(&verdict), Some(wanted));
        assert_eq!(std::mem::take(&mut *runs.lock().unwrap()).concat().len(), new);
    }
    // One message of a known block is another one.
    let mut turn = texts.clone();
    turn[BLOCK + 1] = "other";
    judged(&executor, Event::PreInference, &conversation(&turn)).await;
    assert_eq!(*runs.lock().unwrap(), [["other"]]);
}

#[test]
fn digests_after_a_rewrite_are_those_of_what_was_rewritten() {
    let texts = |rewritten: &[usize], count: usize| -> Input {
        let text = |place| if rewritten.contains(&place) { "new".to_owned() } else { place.to_string() };
        let messages = (0..count).map(|place| Message::new("user", &text(place))).collect();
        Input { messages: Some(messages), ..Input::default() }
    };
    let before = texts(&[], BLOCK * 3);
    for after in
        [texts(&[], BLOCK * 3), texts(&[BLOCK + 2], BLOCK * 3), texts(&[], BLOCK * 5), texts(&[1], 3), texts(&[], 0)]
    {
        let digests = Digests::default();
        digests.blocks(before.messages.as_deref().unwrap());
        digests.message(before.messages.as_deref().unwrap(), 1);
        let digests = digests.rewritten(&before, &after);
        let messages = after.messages.as_deref().unwrap();
        assert_eq!(digests.blocks(messages), Digests::default().blocks(messages), "{}", messages.len());
        assert_eq!(digests.message(messages, 1), Digests::default().message(messages, 1), "{}", messages.len());
    }
}
