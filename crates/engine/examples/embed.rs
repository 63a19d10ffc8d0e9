//! Embeds the engine: a guard of one's own, one event, one verdict. `cargo run -p gatehook-engine --example embed`.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use gatehook_engine::events::{Event, Input, Output};
use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::with_defaults();
    registry.register_builtin("no_force_push", |_context, input, _args| {
        let command = input.tool_input.as_deref().and_then(|arguments| arguments.get("cmd")?.as_str());
        let forces = command.is_some_and(|command| command.contains("push --force"));
        Ok(forces.then(|| Output::block("pushes are never forced here")))
    })?;
    let hooks = vec![HookDefinition::builtin("no_force_push", &[])];
    let config = HooksConfig { groups: vec![HookGroup { event: Event::PreToolUse, matcher: "shell".into(), hooks }] };
    let executor = Executor::with_registry(config, HandlerEnv::current()?, &registry)?;

    let input = serde_json::from_str::<Input>(r#"{"tool_name":"shell","tool_input":{"cmd":"git push --force"}}"#)?;
    let verdict = executor.dispatch(Event::PreToolUse, &input, &CancellationToken::new()).await;
    println!("allowed: {}, because: {}", verdict.allowed, verdict.message);
    Ok(())
}
