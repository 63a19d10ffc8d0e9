use std::collections::VecDeque;

use gatehook_engine::events::{Event, Output, Profile, Recorder, Trace};
use gatehook_engine::{HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
use serde_json::json;
use tokio::sync::Notify;

use super::*;

/// Answers in order; then thinks for ever.
#[derive(Default)]
struct Person {
    answers: Mutex<VecDeque<Answer>>,
    questions: Mutex<Vec<Question>>,
    asked: Notify,
}

impl Asks for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a> {
        self.questions.lock().unwrap().push(question.clone());
        self.asked.notify_one();
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async {
            match answer {
                Some(answer) => {
                    // Whoever else is ready goes first.
                    tokio::task::yield_now().await;
                    answer
                }
                None => std::future::pending().await,
            }
        })
    }
}

#[derive(Debug, Default)]
struct Seen(Mutex<Vec<Trace>>);

impl Recorder for Seen {
    fn record(&self, trace: Trace) {
        self.0.lock().unwrap().push(trace);
    }
}

/// A session, what its hooks saw, and who was asked.
struct Room {
    approvals: Approvals,
    seen: Arc<Seen>,
    person: Arc<Person>,
    cancel: CancellationToken,
}

/// Hooks of a test: the event, the contract, and what is said, if the arguments hold a text.
type Says = (Event, Profile, &'static str, Value);

const NATIVE: Profile = Profile::Native;
const DOCKER: Profile = Profile::DockerAgent;

fn decides(decision: &str) -> Value {
    json!({"hook_specific_output": {"permission_decision": decision, "permission_decision_reason": "the hook said so"}})
}

fn rewrites(command: &str) -> Value {
    json!({"hook_specific_output": {"updated_input": {"cmd": command}}})
}

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
    Rules::parse(allow.iter().copied(), ask.iter().copied(), deny.iter().copied()).unwrap()
}

fn room(hooks: &[Says], answers: impl IntoIterator<Item = Answer>) -> Room {
    let cancel = CancellationToken::new();
    let registry = Registry::new();
    registry
        .register_builtin("says", |_, input, args| {
            let fits = serde_json::to_string(&input.tool_input).unwrap().contains(&args[0]);
            Ok(if fits { serde_json::from_str::<Option<Output>>(&args[1]).unwrap() } else { None })
        })
        .unwrap();
    let token = cancel.clone();
    registry
        .register_builtin("gives_up", move |_, _, _| {
            token.cancel();
            Ok(Some(Output::block("cut short")))
        })
        .unwrap();
    let watched = [Event::OnToolApprovalDecision, Event::OnUserInput];
    let looks_on = watched.map(|event| (event, NATIVE, "", Value::Null));
    let group = |(event, profile, when, says): &Says| {
        let mut hook = match says.as_str() {
            Some(name) => HookDefinition::builtin(name, &[]),
            None => HookDefinition::builtin("says", &[when, &says.to_string()]),
        };
        hook.profile = *profile;
        HookGroup { event: *event, matcher: String::new(), hooks: vec![hook] }
    };
    let config = HooksConfig { groups: hooks.iter().chain(&looks_on).map(group).collect() };
    let executor = Executor::with_registry(config, HandlerEnv::current().unwrap(), &registry).unwrap();
    let seen = Arc::new(Seen::default());
    let person = Arc::new(Person { answers: Mutex::new(answers.into_iter().collect()), ..Person::default() });
    let approvals = Approvals::new(executor.recorded(seen.clone()), StandingRules::default()).asking(person.clone());
    Room { approvals, seen, person, cancel }
}

fn shell(command: &str) -> ToolUse {
    let tool = Tool { name: "shell".into(), category: Some("shell".into()), ..Tool::default() };
    let arguments = json!({"cmd": command}).as_object().cloned().unwrap();
    ToolUse { id: Some("call-1".into()), tool, arguments: arguments.into() }
}

impl Room {
    fn mode(self, mode: SafetyMode) -> Self {
        self.approvals.set_mode(Some(mode));
        self
    }

    fn session(self, rules: Rules) -> Self {
        self.approvals.set_session_rules(rules);
        self
    }

    fn standing(mut self, standing: StandingRules) -> Self {
        self.approvals.standing = standing;
        self
    }

    async fn settle(&self, call: &ToolUse) -> Settled {
        self.approvals.settle(call, &Input::default(), &self.cancel).await
    }

    /// In short: what became of a command and by whom, and how often the person was asked.
    async fn shell(&self, command: &str) -> (String, usize) {
        let before = self.asked();
        let settled = match self.settle(&shell(command)).await {
            Settled::Run { input, source } => format!("run {} by {}", input["cmd"].as_str().unwrap(), source.name()),
            Settled::Deny { source, .. } => format!("deny by {}", source.name()),
            Settled::Canceled => "canceled".to_owned(),
        };
        (settled, self.asked() - before)
    }

    fn asked(&self) -> usize {
        self.person.questions.lock().unwrap().len()
    }

    fn events(&self) -> Vec<&'static str> {
        self.seen.0.lock().unwrap().iter().map(|trace| trace.event.name()).collect()
    }

    fn decisions(&self) -> Vec<(String, String, String)> {
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let traces = self.seen.0.lock().unwrap();
        let told = traces.iter().filter(|trace| trace.event == Event::OnToolApprovalDecision).map(|trace| &trace.input);
        told.map(|input| (text(&input.approval_decision), text(&input.approval_source), text(&input.safety_label)))
            .collect()
    }
}

fn ran(command: &str, source: &str, asked: usize) -> (String, usize) {
    (format!("run {command} by {source}"), asked)
}

fn denied(source: &str, asked: usize) -> (String, usize) {
    (format!("deny by {source}"), asked)
}

#[tokio::test]
async fn a_mode_says_what_runs_unasked() {
    use SafetyMode::{Autonomous, Balanced, Restricted, Strict};
    for (mode, command, outcome) in [
        (None, "ls", ran("ls", "user_approved", 1)),
        (Some(Strict), "ls", ran("ls", "user_approved", 1)),
        (Some(Balanced), "ls", ran("ls", "mode_balanced", 0)),
        (Some(Balanced), "make", ran("make", "user_approved", 1)),
        (Some(Balanced), "rm -rf a", ran("rm -rf a", "user_approved", 1)),
        (Some(Restricted), "ls", ran("ls", "mode_restricted", 0)),
        (Some(Restricted), "make", denied("mode_restricted", 0)),
        (Some(Restricted), "rm -rf a", denied("mode_restricted", 0)),
        (Some(Autonomous), "rm -rf a", ran("rm -rf a", "yolo", 0)),
    ] {
        let room = room(&[], [Answer::Approve]);
        room.approvals.set_mode(mode);
        assert_eq!(room.shell(command).await, outcome, "{mode:?} {command}");
    }
}

#[tokio::test]
async fn a_tool_that_says_it_only_reads_runs_unasked_where_no_mode_was_chosen() {
    let reads = Tool { name: "read_file".into(), read_only: true, ..Tool::default() };
    let both = Tool { destructive: true, ..reads.clone() };
    let runs = Tool { name: "bash".into(), ..reads.clone() };
    for (tool, mode, runs) in [
        (reads.clone(), None, true),
        (both, None, false),
        (runs, None, false),
        (reads.clone(), Some(SafetyMode::Strict), false),
        (reads, Some(SafetyMode::Balanced), true),
    ] {
        let mut room = room(&[], []);
        room.approvals.person = None;
        room.approvals.set_mode(mode);
        let call = ToolUse { id: None, tool, arguments: Arc::default() };
        let settled = room.settle(&call).await;
        assert_eq!(matches!(settled, Settled::Run { .. }), runs, "{mode:?} {call:?}");
    }
}

#[tokio::test]
async fn a_hook_of_our_own_guards_what_is_permitted_and_one_of_docker_agent_is_silent() {
    for profile in [NATIVE, DOCKER] {
        let hooks = || [(Event::PreToolUse, profile, "rm", decides("deny"))];
        let silent = profile == DOCKER;
        let outcome = |source| if silent { ran("rm a", source, 0) } else { denied("pre_tool_use_hook_deny", 0) };
        let autonomous = room(&hooks(), []).mode(SafetyMode::Autonomous);
        assert_eq!(autonomous.shell("rm a").await, outcome("yolo"));
        let granted = room(&hooks(), []).session(rules(&["shell"], &[], &[]));
        assert_eq!(granted.shell("rm a").await, outcome("session_permissions_allow"));
        let asked = room(&hooks(), [Answer::Approve]).session(rules(&[], &["shell"], &[]));
        let outcome = if silent { ran("rm a", "user_approved", 1) } else { denied("pre_tool_use_hook_deny", 0) };
        assert_eq!(asked.shell("rm a").await, outcome);
        assert_eq!(room(&hooks(), []).shell("rm a").await, denied("pre_tool_use_hook_deny", 0), "it is open");
    }
}

#[tokio::test]
async fn what_a_hook_asks_about_is_asked_in_every_mode_unless_the_session_surely_allows_it() {
    for (session, asked) in [(rules(&[], &[], &[]), 1), (rules(&["shell:cmd=rm*"], &[], &[]), 0)] {
        let hooks = [(Event::PreToolUse, NATIVE, "rm", decides("ask"))];
        let room = room(&hooks, [Answer::Approve]).mode(SafetyMode::Autonomous).session(session);
        assert_eq!(room.shell("rm a").await.1, asked);
    }
    let hooks = [(Event::PreToolUse, NATIVE, "rm", decides("ask"))];
    let room = room(&hooks, [Answer::Approve]).session(rules(&["shell:cmd=*"], &[], &[]));
    assert_eq!(room.shell("rm a; rm b").await, ran("rm a; rm b", "user_approved", 1), "a rule that may not mean it");
}

#[tokio::test]
async fn what_is_permitted_is_judged_again_where_a_hook_rewrites_it() {
    let hooks = || [(Event::PreToolUse, NATIVE, "ls", rewrites("rm -rf a"))];
    let safe = room(&hooks(), [Answer::Reject { reason: String::new() }]).mode(SafetyMode::Balanced);
    assert_eq!(safe.shell("ls").await, denied("user_rejected", 1));
    assert_eq!(safe.person.questions.lock().unwrap()[0].tool_input["cmd"], "rm -rf a");
    let granted = room(&hooks(), [Answer::Approve]).session(rules(&["shell:cmd=ls*"], &[], &[]));
    assert_eq!(granted.shell("ls").await, ran("rm -rf a", "user_approved", 1));
    let refused = room(&hooks(), []).mode(SafetyMode::Autonomous).session(rules(&[], &[], &["shell:cmd=rm*"]));
    assert_eq!(refused.shell("ls").await, denied("session_permissions_deny", 0));
    let free = room(&hooks(), []).mode(SafetyMode::Autonomous);
    assert_eq!(free.shell("ls").await, ran("rm -rf a", "yolo", 0));
    let asked =
        room(&hooks(), [Answer::Approve]).mode(SafetyMode::Autonomous).session(rules(&[], &["shell:cmd=ls*"], &[]));
    assert_eq!(asked.shell("ls").await, ran("rm -rf a", "user_approved", 1), "a rewrite answers no question");
}

#[tokio::test]
async fn a_rewrite_makes_no_earlier_permission_its_own() {
    let hooks = [(Event::PreToolUse, DOCKER, "ls", rewrites("rm -rf a"))];
    let room = room(&hooks, [Answer::Approve]).session(rules(&["shell:cmd=rm*"], &[], &[]));
    assert_eq!(room.shell("ls").await, ran("rm -rf a", "user_approved", 1));
}

#[tokio::test]
async fn guards_see_a_rewrite_once_more_and_the_rewriting_hook_does_not() {
    let hooks = [
        (Event::ToolGuard, NATIVE, "", Value::Null),
        (Event::PreToolUsePreempt, NATIVE, "", Value::Null),
        (Event::PreToolUse, NATIVE, "", rewrites("ls -la")),
    ];
    let room = room(&hooks, [Answer::Approve]);
    assert_eq!(room.shell("ls").await, ran("ls -la", "user_approved", 1));
    let guards = ["tool_guard", "pre_tool_use_pre_yolo"];
    let expected = [&guards[..], &["pre_tool_use"], &guards, &["on_user_input", "on_tool_approval_decision"]].concat();
    assert_eq!(room.events(), expected);
}

#[tokio::test]
async fn a_guard_that_asks_is_answered_by_a_person_alone() {
    let hooks =
        [(Event::ToolGuard, NATIVE, "", decides("ask")), (Event::PermissionRequest, NATIVE, "", decides("allow"))];
    let room = room(&hooks, [Answer::ApproveTool(None), Answer::ApproveAutonomous, Answer::Approve]);
    let room = room.session(rules(&["shell"], &[], &[]));
    assert_eq!(room.shell("ls").await, ran("ls", "user_approved_tool", 1));
    assert_eq!(room.shell("ls").await, ran("ls", "user_approved_autonomous", 1));
    assert_eq!(room.shell("ls").await, ran("ls", "user_approved", 1));
    assert_eq!(room.person.questions.lock().unwrap()[0].reason, "the hook said so");
    assert!(!room.events().contains(&"permission_request"));
}

#[tokio::test]
async fn no_question_of_a_hook_turns_a_denial_into_an_approval() {
    for event in [Event::ToolGuard, Event::PreToolUsePreempt] {
        let hooks = || [(event, DOCKER, "", decides("ask"))];
        let ruled = room(&hooks(), []).session(rules(&[], &[], &["shell:cmd=rm*"]));
        assert_eq!(ruled.shell("rm a").await, denied("session_permissions_deny", 0), "{}", event.name());
        let restricted = room(&hooks(), []).mode(SafetyMode::Restricted);
        assert_eq!(restricted.shell("rm a").await, denied("mode_restricted", 0), "{}", event.name());
    }
}

#[tokio::test]
async fn a_preempting_hook_that_asks_heeds_the_session_and_no_other_permission() {
    let hooks = || [(Event::PreToolUsePreempt, DOCKER, "", decides("ask"))];
    let granted = room(&hooks(), []).session(rules(&["shell:cmd=mkdir*"], &[], &[]));
    assert_eq!(granted.shell("mkdir a").await, ran("mkdir a", "session_permissions_allow", 0));
    let team = StandingRules { workspace: rules(&["shell"], &[], &[]), ..StandingRules::default() };
    let team = room(&hooks(), [Answer::Approve]).mode(SafetyMode::Autonomous).standing(team);
    assert_eq!(team.shell("mkdir a").await, ran("mkdir a", "user_approved", 1));
}

#[tokio::test]
async fn a_managed_rule_stands_above_what_the_person_allowed_before() {
    let managed = |rules| StandingRules { managed: rules, ..StandingRules::default() };
    let asks = room(&[], [Answer::Approve]).standing(managed(rules(&[], &["shell"], &[])));
    let asks = asks.mode(SafetyMode::Autonomous).session(rules(&["shell"], &[], &[]));
    assert_eq!(asks.shell("ls").await, ran("ls", "user_approved", 1));
    let denies = room(&[], []).standing(managed(rules(&[], &[], &["shell"]))).session(rules(&["shell"], &[], &[]));
    assert_eq!(denies.shell("ls").await, denied("managed_permissions_deny", 0));
}

#[tokio::test]
async fn what_the_person_answers_holds_for_later_calls() {
    let rule = "shell:cmd=git status*".parse().unwrap();
    let room =
        room(&[], [Answer::ApproveTool(Some(rule)), Answer::ApproveBalanced, Answer::Reject { reason: "no".into() }]);
    assert_eq!(room.shell("git status").await, ran("git status", "user_approved_tool", 1));
    assert_eq!(room.shell("git status -s").await, ran("git status -s", "session_permissions_allow", 0));
    assert_eq!(room.shell("make").await, ran("make", "user_approved_balanced", 1));
    assert_eq!(room.shell("ls").await, ran("ls", "mode_balanced", 0));
    let refused = room.settle(&shell("make")).await;
    let reason = "The user rejected the tool call. Reason: no".to_owned();
    assert_eq!(refused, Settled::Deny { reason, source: Source::UserRejected });
    assert_eq!(room.approvals.session_rules().allow.len(), 1);
}

#[tokio::test]
async fn calls_side_by_side_are_asked_about_one_after_another_and_an_answer_may_settle_both() {
    let settle = |room: Room| async move {
        let (first, second) = tokio::join!(room.shell("mkdir a"), room.shell("mkdir b"));
        (first.0, second.0, room.asked())
    };
    let plain = room(&[], [Answer::ApproveTool(None)]);
    let expected = ("run mkdir a by user_approved_tool", "run mkdir b by session_permissions_allow");
    assert_eq!(settle(plain).await, (expected.0.to_owned(), expected.1.to_owned(), 1));
    let guarded = room(&[(Event::ToolGuard, NATIVE, "", decides("ask"))], [Answer::ApproveTool(None), Answer::Approve]);
    let expected = ("run mkdir a by user_approved_tool", "run mkdir b by user_approved");
    assert_eq!(settle(guarded).await, (expected.0.to_owned(), expected.1.to_owned(), 2));
}

#[tokio::test]
async fn each_call_is_told_of_once_with_its_label() {
    let with = |event, says: Value| room(&[(event, NATIVE, "", says)], [Answer::Approve]);
    let told = |decision: &str, source: &str, label: &str| vec![(decision.into(), source.into(), label.into())];
    for (room, command, expected) in [
        (room(&[], [Answer::Approve]), "ls", told("allow", "user_approved", "safe")),
        (room(&[], []).mode(SafetyMode::Autonomous), "rm -rf a", told("allow", "yolo", "destructive")),
        (
            with(Event::ToolInputTransform, json!({"decision": "block"})),
            "make",
            told("deny", "tool_input_transform_deny", "unknown"),
        ),
        (with(Event::ToolInputTransform, rewrites("rm -rf a")), "ls", told("allow", "user_approved", "destructive")),
        (with(Event::ToolGuard, decides("deny")), "ls", told("deny", "tool_guard_deny", "safe")),
        (with(Event::PreToolUsePreempt, decides("deny")), "ls", told("deny", "pre_tool_use_hook_deny", "safe")),
        (with(Event::PreToolUse, decides("allow")), "make", told("allow", "pre_tool_use_hook_allow", "unknown")),
        (
            with(Event::PermissionRequest, decides("allow")),
            "ls",
            told("allow", "permission_request_hook_allow", "safe"),
        ),
        (with(Event::PermissionRequest, decides("deny")), "ls", told("deny", "permission_request_hook_deny", "safe")),
    ] {
        room.settle(&shell(command)).await;
        assert_eq!(room.decisions(), expected, "{command}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_canceled_and_never_denied() {
    let told = [("canceled".to_owned(), "context_canceled".to_owned(), "safe".to_owned())];
    let stages = [
        Event::ToolInputTransform,
        Event::ToolGuard,
        Event::PreToolUsePreempt,
        Event::PreToolUse,
        Event::PermissionRequest,
    ];
    for event in stages {
        let room = room(&[(event, NATIVE, "", json!("gives_up"))], []);
        assert_eq!(room.settle(&shell("ls")).await, Settled::Canceled, "{}", event.name());
        assert_eq!(room.decisions(), told, "{}", event.name());
        assert_eq!(room.asked(), 0);
    }
    let before = room(&[], []);
    before.cancel.cancel();
    assert_eq!(before.settle(&shell("ls")).await, Settled::Canceled);
    assert_eq!(before.decisions(), told);
}

#[tokio::test]
async fn cancelling_ends_a_question_and_the_wait_for_one() {
    let room = room(&[], []);
    let other = CancellationToken::new();
    let (input, one, two) = (Input::default(), shell("ls"), shell("pwd"));
    let gives_up = async {
        room.person.asked.notified().await;
        other.cancel();
        tokio::task::yield_now().await;
        room.cancel.cancel();
    };
    let (first, second, ()) = tokio::join!(room.settle(&one), room.approvals.settle(&two, &input, &other), gives_up);
    assert_eq!((first, second, room.asked()), (Settled::Canceled, Settled::Canceled, 1));
    assert_eq!(room.decisions().len(), 2);
}

#[tokio::test]
async fn a_dropped_question_leaves_the_next_one_to_be_asked() {
    let room = room(&[], []);
    let call = shell("ls");
    tokio::select! {
        _ = room.settle(&call) => panic!("nobody answers"),
        () = room.person.asked.notified() => {}
    }
    room.person.answers.lock().unwrap().push_back(Answer::Approve);
    assert_eq!(room.shell("ls").await, ran("ls", "user_approved", 1));
}

#[tokio::test]
async fn nobody_there_to_ask_is_a_no_and_no_dialog_is_announced() {
    let mut room = room(&[(Event::PermissionRequest, NATIVE, "", Value::Null)], []);
    room.approvals.person = None;
    let reason = "Tool 'shell' requires user confirmation but the session is non-interactive.".to_owned();
    assert_eq!(room.settle(&shell("ls")).await, Settled::Deny { reason, source: Source::NonInteractiveDeny });
    assert_eq!(room.events(), ["permission_request", "on_tool_approval_decision"]);
}

#[tokio::test]
async fn the_person_is_told_what_each_knows_the_guards_last() {
    let knows = |keys: &[&str], value: &str| {
        let metadata: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), value.into())).collect();
        json!({"hook_specific_output": {"metadata": metadata}})
    };
    let hooks = [
        (Event::PermissionRequest, NATIVE, "", knows(&["tool_was", "safety_label"], "request")),
        (Event::PreToolUsePreempt, NATIVE, "", knows(&["blast_radius", "reason"], "preempt")),
        (Event::ToolGuard, NATIVE, "", knows(&["reason"], "guard")),
    ];
    let room = room(&hooks, [Answer::Approve]);
    let mut call = shell("ls");
    call.tool.metadata = BTreeMap::from(["tool_was", "tool_is"].map(|key| (key.to_owned(), "tool".to_owned())));
    room.settle(&call).await;
    let questions = room.person.questions.lock().unwrap();
    let expected = [
        ("blast_radius", "preempt"),
        ("category", "read"),
        ("reason", "guard"),
        ("safety_label", "safe"),
        ("tool_is", "tool"),
        ("tool_was", "request"),
    ];
    let known: Vec<_> = questions[0].metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(known, expected);
}

#[tokio::test]
async fn hooks_are_told_the_call_as_it_stands() {
    let hooks =
        [(Event::ToolInputTransform, NATIVE, "", rewrites("pwd")), (Event::PermissionRequest, NATIVE, "", Value::Null)];
    let room = room(&hooks, [Answer::Approve]).mode(SafetyMode::Strict);
    let about = Input { session_id: Some("s".into()), agent_name: Some("root".into()), ..Input::default() };
    room.approvals.settle(&shell("ls"), &about, &room.cancel).await;
    let traces = room.seen.0.lock().unwrap();
    let input = |event| traces.iter().find(|trace| trace.event == event).map(|trace| trace.input.clone()).unwrap();
    let request = input(Event::PermissionRequest);
    assert_eq!(
        request.to_json().unwrap(),
        json!({
            "session_id": "s", "agent_name": "root", "tool_name": "shell", "tool_use_id": "call-1",
            "tool_input": {"cmd": "pwd"}, "tool_category": "shell", "plane": "agent", "safety_policy": "strict",
            "operation": "shell", "details": {"tool": "shell", "args": {"cmd": "pwd"}}, "requester": "root",
        })
    );
    assert_eq!(input(Event::OnUserInput), about);
}

#[test]
fn each_source_has_a_name_of_its_own_that_the_documentation_explains() {
    static PAGE: &str = include_str!("../../../../docs/agent.md");
    let names: std::collections::BTreeSet<_> = SOURCES.iter().map(|spec| spec.name).collect();
    assert_eq!(names.len(), SOURCES.len());
    for (place, spec) in SOURCES.iter().enumerate() {
        assert_eq!(spec.source as usize, place);
        let row = format!("| `{}` | {} |", spec.name, spec.doc.trim());
        assert!(PAGE.contains(&row), "{row}");
    }
}

#[test]
fn a_mode_is_read_by_its_name() {
    for name in ["strict", "balanced", "restricted", "autonomous"] {
        assert_eq!(SafetyMode::from_name(name).map(SafetyMode::name), Some(name));
    }
    assert_eq!(SafetyMode::from_name("Strict"), None);
}
