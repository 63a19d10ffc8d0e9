//! That the tables forget nothing: no event, nothing that it is told, nothing that its verdict does.

use std::collections::BTreeSet;
use std::path::Path;

use gatehook_agent::session::MOMENTS;
use gatehook_dialects::{ollama_cli, ollm};
use gatehook_engine::events::input::FIELDS;
use gatehook_engine::events::{Decides, Event, Profile};
use serde_json::Value;

use super::table::{Row, Table, table};
use super::{DOCKER_AGENT, NATIVE, OLLAMA_CLI, OLLM};

/// Ways in which a hook fails, each of which what guards is to withstand.
const FAILURES: [&str; 3] = ["code 1", "malformed", "late"];

/// The rows of an event.
fn rows<'t>(table: &'t Table, event: &'t str) -> impl Iterator<Item = &'t Row> + Clone {
    table.rows.iter().filter(move |row| row.event == event)
}

/// Whether an event's rows are elsewhere, where there is a test that names it.
fn is_elsewhere(table: &Table, event: &str, native: Event) -> bool {
    let Some(folder) = table.elsewhere.get(event) else { return false };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut texts = files.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok());
    assert!(texts.any(|text| text.contains(native.name())), "no test of {} names {event}", folder.display());
    true
}

/// The places in an event's payloads that are looked at.
fn places(table: &Table, event: &str) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for told in table.rows.iter().filter_map(|row| row.told.get(event)) {
        for told in told.as_array().unwrap_or(&vec![told.clone()]) {
            walk("", told, &mut places);
        }
    }
    places
}

fn walk(place: &str, told: &Value, places: &mut BTreeSet<String>) {
    if told != "<none>" {
        places.insert(place.to_owned());
    }
    for (key, told) in told.as_object().into_iter().flatten() {
        walk(&if place.is_empty() { key.clone() } else { format!("{place}.{key}") }, told, places);
    }
}

/// What a contract tells of an event, as places in its payload.
fn facts(profile: Profile, event: Event) -> Vec<String> {
    let moment = || MOMENTS.iter().find(|moment| moment.event == event).unwrap();
    match profile {
        Profile::OllamaCli => {
            let keys = ollama_cli::places(event).map(|(key, _)| key.to_owned());
            keys.flat_map(|key| [format!("data.{key}"), key]).collect()
        }
        Profile::Ollm => ollm::places(event).map(|(place, _)| format!("context.{place}")).collect(),
        Profile::Native => moment().fields().map(|field| field.name.to_owned()).collect(),
        _ => {
            let theirs = |name: &&str| FIELDS.iter().any(|field| field.name == *name && field.docker_agent);
            moment().fields().map(|field| field.name).filter(theirs).map(str::to_owned).collect()
        }
    }
}

/// What a hook of an event may bring about, in the words of the tables; of the native contract its failures alone, for
/// the rest is said by its moment.
fn powers(profile: Profile, event: Event) -> Vec<&'static str> {
    let able = event.capabilities(profile).unwrap();
    let is_native = profile == Profile::Native;
    [
        ("failure", able.blocks),
        ("block", able.blocks && !able.blocks_late && !is_native),
        ("late block", able.blocks_late),
        ("no block", !able.blocks && !is_native),
        ("rewrite", able.rewrites.is_some() && !is_native),
        ("ask", able.decides == Decides::TriState && !is_native),
        ("allow", able.decides != Decides::No && !is_native),
        ("context", able.context && !is_native),
    ]
    .into_iter()
    .filter_map(|(power, has)| has.then_some(power))
    .collect()
}

#[test]
fn no_event_no_fact_and_no_power_is_without_a_scenario() {
    let mut forgotten = Vec::new();
    for (profile, files) in [
        (Profile::Native, NATIVE),
        (Profile::DockerAgent, DOCKER_AGENT),
        (Profile::OllamaCli, OLLAMA_CLI),
        (Profile::Ollm, OLLM),
    ] {
        let table = table(files);
        let mut forget = |what: String| forgotten.push(format!("{}: {what}", profile.name()));
        for event in Event::all() {
            let Some(name) = event.name_in(profile) else { continue };
            if is_elsewhere(&table, name, event) {
                continue;
            }
            let (told, untold) = (places(&table, name), table.untold.get(name).cloned().unwrap_or_default());
            for fact in facts(profile, event).into_iter().filter(|fact| !told.contains(fact)) {
                if !untold.contains(&fact) {
                    forget(format!("nothing looks at `{fact}` of {name}"));
                }
            }
            for power in powers(profile, event) {
                if !rows(&table, name).any(|row| row.clause.starts_with(power)) {
                    forget(format!("nothing shows a {power} of {name}"));
                }
            }
            for row in rows(&table, name).filter(|row| row.clause == "failure" && row.ways.len() > 1) {
                for way in FAILURES.iter().filter(|way| !row.ways.iter().any(|known| known == *way)) {
                    forget(format!("nothing shows a failure of {name}: {way}"));
                }
            }
        }
        for row in &table.rows {
            assert!(Event::from_name_in(profile, &row.event).is_some(), "there is no event {}", row.event);
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}

#[test]
fn every_clause_of_what_a_verdict_does_has_a_scenario() {
    let table = table(NATIVE);
    let mut forgotten = Vec::new();
    for moment in MOMENTS {
        let name = moment.event.name();
        if is_elsewhere(&table, name, moment.event) {
            continue;
        }
        let clauses: Vec<&str> = match moment.obeyed.starts_with("None") {
            true if moment.event.capabilities(Profile::Native).is_some_and(|able| able.blocks) => vec![],
            true => vec!["None"],
            false => moment.obeyed.split(['.', ';', ',']).map(str::trim).filter(|clause| !clause.is_empty()).collect(),
        };
        for clause in clauses {
            if !rows(&table, name).any(|row| row.clause.contains(clause)) {
                forgotten.push(format!("{name}: {clause}"));
            }
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}
