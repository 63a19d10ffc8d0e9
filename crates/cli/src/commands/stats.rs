//! `gatehook hooks stats`: what each hook did, over all recorded dispatches.

use std::collections::BTreeMap;

use gatehook_events::trace::{HookStats, Traces};
use serde_json::{Value, json};

use crate::args::StatsArgs;
use crate::commands::hooks::millis;
use crate::commands::trace::{micros, nothing, open, since};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;
use crate::table::Table;

/// Runs `hooks stats`.
pub(crate) fn run(args: &StatsArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let stats = open(&args.memory, env)?.map(|memory| memory.stats(since(args.since))).transpose()?;
    let Some(stats) = stats.filter(|stats| !stats.is_empty()) else {
        nothing(&args.memory, printer)?;
        return Ok(Exit::Done);
    };
    if args.memory.json {
        printer.json(&stats.iter().map(json).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    let mut table =
        Table::new(&["EVENT", "HOOK", "TYPE", "RUNS", "FAILURES", "BLOCKS", "P50", "P95", "P99", "MAX", "COST"]);
    for hook in &stats {
        table.row([
            hook.event.clone(),
            hook.hook.clone(),
            hook.handler.clone(),
            hook.runs.to_string(),
            hook.failures.to_string(),
            hook.blocks.to_string(),
            millis(hook.p50),
            millis(hook.p95),
            millis(hook.p99),
            millis(hook.max),
            hook.cost.map(|cost| format!("{cost:.4}")).unwrap_or_default(),
        ]);
    }
    printer.text(&table)?;
    Ok(Exit::Done)
}

fn json(hook: &HookStats) -> Value {
    json!({
        "event": hook.event, "name": hook.hook, "type": hook.handler, "runs": hook.runs, "failures": hook.failures,
        "blocks": hook.blocks, "p50_us": micros(hook.p50), "p95_us": micros(hook.p95), "p99_us": micros(hook.p99),
        "max_us": micros(hook.max), "cost": hook.cost,
    })
}
