//! Every event of the catalogue in an agent, by each contract: tables of what makes it happen, what its hooks are told, and
//! what becomes of their answers.
//!
//! `scenes.yaml`: what makes something happen. The other tables: a row for each thing that is so. `cover` makes sure that
//! none is forgotten.

mod compare;
mod cover;
mod play;
mod table;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatehook_engine::events::Profile;

use self::table::{Act, Row, scenes, table};

const NATIVE: &[&str] = &["native.yaml", "native_tools.yaml", "native_trouble.yaml"];
const DOCKER_AGENT: &[&str] = &["docker_agent.yaml", "docker_agent_tools.yaml"];
const OLLAMA_CLI: &[&str] = &["ollama_cli.yaml", "ollama_cli_tools.yaml"];
const OLLM: &[&str] = &["ollm.yaml"];

/// So many programs at a time: they wait more than they work.
const SIDE_BY_SIDE: usize = 4;

/// Plays all rows of a contract, each in each of its ways; `SCENARIO=pre_tool_use` only those of events with this name.
fn holds(profile: Profile, files: &[&str]) {
    let (table, scenes) = (table(files), scenes());
    let only = std::env::var("SCENARIO").unwrap_or_default();
    let mut runs: Vec<(&Row, Option<(&str, &Act)>)> = Vec::new();
    for row in table.rows.iter().filter(|row| row.event.contains(&only)) {
        let way = |name: &String| table.ways.get_key_value(name).unwrap_or_else(|| panic!("there is no way {name}"));
        runs.extend(row.ways.iter().map(|name| (row, Some((name.as_str(), way(name).1)))));
        runs.extend(row.ways.is_empty().then_some((row, None)));
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((row, way)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let played = play::play(profile, row, &row.scene(&scenes), way.map(|(_, act)| act));
            let differences = compare::differences(row, &played);
            if !differences.is_empty() {
                let way = way.map_or(String::new(), |(name, _)| format!(", {name}"));
                let (event, clause, differences) = (&row.event, &row.clause, differences.join("\n  "));
                let said = format!("{event} ({clause}{way}):\n  {differences}\n  heard: {:?}\n", played.events());
                wrong.lock().unwrap().push(format!("{said}  {}", played.noticed()));
            }
        }
    };
    std::thread::scope(|scope| (0..SIDE_BY_SIDE).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), runs.len(), wrong.join("\n"));
}

#[test]
fn each_event_happens_at_its_moment_and_its_verdict_is_obeyed() {
    holds(Profile::Native, NATIVE);
}

#[test]
fn each_event_of_docker_agent_is_told_and_obeyed_as_it_publishes() {
    holds(Profile::DockerAgent, DOCKER_AGENT);
}

#[test]
fn each_event_of_ollama_cli_is_told_and_obeyed_as_it_publishes() {
    holds(Profile::OllamaCli, OLLAMA_CLI);
}

#[test]
fn each_event_of_ollm_is_told_and_obeyed_as_it_publishes() {
    holds(Profile::Ollm, OLLM);
}
