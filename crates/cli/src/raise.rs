//! Raises an event, and shows what came of it.

use std::pin::pin;
use std::time::Duration;

use gatehook_engine::Executor;
use gatehook_engine::handlers::command;
use gatehook_events::{Event, Input, Outcome, OutcomeKind, Verdict};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;
use crate::table::Table;

/// How long observers, and what hooks left behind, may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The verdict on an event, when nothing of it runs any more; `None` where Ctrl-C or SIGTERM came first.
pub(crate) fn event(executor: &Executor, event: Event, input: &Input) -> std::io::Result<Option<Verdict>> {
    // What a command hook leaves behind outside of its group becomes a child of this process, and is ended. Where the
    // system has no such thing, the group is all that is ended.
    let _ = command::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let verdict = runtime.block_on(until_told(executor, event, input));
    drop(runtime);
    command::end_leftovers(PATIENCE);
    verdict
}

/// The same, shown: what an exit code says of the verdict.
pub(crate) fn and_show(
    executor: &Executor,
    event: Event,
    input: &Input,
    json: bool,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let Some(verdict) = self::event(executor, event, input)? else { return Ok(Exit::Stopped) };
    if json {
        printer.json(&verdict)?;
    } else {
        printer.text(&shown(event, &verdict))?;
    }
    Ok(if verdict.allowed { Exit::Done } else { Exit::No })
}

/// The verdict, once observers have seen the event too; `None` where Ctrl-C or SIGTERM came first. Hooks run in process
/// groups of their own, which a terminal's Ctrl-C does not reach: they are ended here.
async fn until_told(executor: &Executor, event: Event, input: &Input) -> std::io::Result<Option<Verdict>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = CancellationToken::new();
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    };
    let dispatch = async {
        let verdict = executor.dispatch(event, input, &cancel).await;
        executor.drain(PATIENCE).await;
        verdict
    };
    let (mut told, mut dispatch) = (pin!(told), pin!(dispatch));
    tokio::select! {
        verdict = &mut dispatch => return Ok(Some(verdict)),
        () = &mut told => {}
    }
    // Hooks have 200 ms to end themselves; what still runs when this gives up is killed with the runtime.
    let ended = async { tokio::join!(dispatch, executor.drain(Duration::ZERO)) };
    let _ = tokio::time::timeout(Duration::from_secs(1), ended).await;
    Ok(None)
}

/// Outcomes as a table, then the verdict and what it changes.
pub(crate) fn shown(event: Event, verdict: &Verdict) -> String {
    let mut text = String::new();
    if verdict.outcomes.is_empty() {
        text.push_str(&format!("no hook fits this {}\n", event.name()));
    } else {
        let mut table = Table::new(&["HOOK", "TYPE", "OUTCOME", "EXIT", "TIME", "REASON"]);
        for outcome in &verdict.outcomes {
            table.row(outcome_row(outcome));
        }
        text.push_str(&table.to_string());
    }
    text.push('\n');
    let refusal = verdict.refusal.as_ref();
    let rewritten = (!verdict.rewritten.is_empty()).then(|| serde_json::to_string_pretty(&verdict.rewritten));
    for (name, value) in [
        ("verdict", Some(verdict.verb.name())),
        ("message", Some(verdict.message.as_str())),
        (
            "to the user",
            refusal.and_then(|refusal| refusal.user_message.as_deref()).filter(|it| *it != verdict.message),
        ),
        ("to the agent", refusal.and_then(|refusal| refusal.agent_message.as_deref())),
        ("context", Some(verdict.additional_context.as_str())),
        ("notice", Some(verdict.system_message.as_str())),
        ("summary", Some(verdict.summary.as_str())),
        ("rewritten", rewritten.and_then(Result::ok).as_deref()),
    ] {
        push_field(&mut text, name, value.unwrap_or_default());
    }
    text
}

/// `name: value`; a value of several lines stands below, indented.
fn push_field(text: &mut String, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    text.push_str(name);
    text.push(':');
    let several = value.contains('\n');
    for line in value.lines() {
        text.push_str(if several { "\n  " } else { " " });
        text.push_str(line);
    }
    text.push('\n');
}

fn outcome_row(outcome: &Outcome) -> [String; 6] {
    [
        outcome.name.to_string(),
        outcome.handler.to_string(),
        match outcome.kind {
            OutcomeKind::Ok => outcome.verb.name().to_owned(),
            OutcomeKind::Blocked => "blocked".to_owned(),
            OutcomeKind::Failed(kind) => format!("failed: {}", kind.name()),
        },
        outcome.exit_code.to_string(),
        format!("{:.1} ms", outcome.duration.as_secs_f64() * 1000.0),
        outcome.reason.lines().next().unwrap_or_default().to_owned(),
    ]
}
