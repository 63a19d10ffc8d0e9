//! The tables of `docs/protocol.md` are made from the catalogue. Set `GATEHOOK_WRITE=1` to write them.

#![allow(clippy::unwrap_used, reason = "what the tests call may stop them too")]

use std::fmt::Write as _;
use std::path::Path;

use gatehook_events::catalogue::CATALOGUE;
use gatehook_events::input::{FIELDS, Scope};
use gatehook_events::profile::{Failing, PROFILES, ProfileSpec};
use gatehook_events::{Capabilities, Decides, Event, Profile};

fn events_table() -> String {
    let mut table = String::from(
        "| event | when | matcher selects | may block | rewrites | decides | context | docker-agent | Ollama CLI | OLLM CLI |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for spec in CATALOGUE.iter().filter(|spec| !spec.event.is_lane()) {
        let Some(native) = spec.native else { continue };
        let subject = spec.subject.map_or(String::new(), |subject| words(&format!("{subject:?}")));
        let rewrites = native.rewrites.map_or(String::new(), |rewrite| words(&format!("{rewrite:?}")));
        let there = spec.docker_agent.map_or("", |docker| if same_power(docker, native) { "same" } else { "narrower" });
        writeln!(
            table,
            "| `{}` | {} | {subject} | {} | {rewrites} | {} | {} | {there} | {} | {} |",
            spec.name,
            spec.doc.trim(),
            tick(native.blocks),
            match native.decides {
                Decides::No => "",
                Decides::TriState => "allow, ask, deny",
                Decides::Consent => "consent",
            },
            tick(native.context),
            foreign_name(spec.event, Profile::OllamaCli),
            foreign_name(spec.event, Profile::Ollm),
        )
        .unwrap();
    }
    table
}

fn foreign_name(event: Event, profile: Profile) -> String {
    event.name_in(profile).map_or(String::new(), |name| format!("`{name}`"))
}

fn same_power(one: Capabilities, other: Capabilities) -> bool {
    (one.blocks, one.rewrites, one.decides, one.context) == (other.blocks, other.rewrites, other.decides, other.context)
}

fn fields_table() -> String {
    let mut table = String::from("| field | type | on | what it says |\n|---|---|---|---|\n");
    for field in FIELDS {
        let on = match field.scope {
            Scope::Always => "every event".to_owned(),
            Scope::Known => "every event, where known".to_owned(),
            Scope::On(events) => names(events),
        };
        writeln!(table, "| `{}` | {} | {on} | {} |", field.name, field.json, field.doc.trim()).unwrap();
    }
    table
}

fn profiles_table() -> String {
    let mut table = String::from(
        "| profile | events | timeout | judge | a failing hook | unreadable replies | rewrites |\n|---|---|---|---|---|---|---|\n",
    );
    for spec in PROFILES {
        let events = Event::all().filter(|event| event.capabilities(spec.profile).is_some()).count();
        writeln!(
            table,
            "| `{}` | {events} | {} s | {} s | {} | {} | {} |",
            spec.name,
            spec.timeout_secs,
            spec.judge_timeout_secs,
            failing(spec),
            if spec.lenient_replies { "are plain text" } else { "are failures" },
            if spec.first_rewrite_wins { "the first one replaces" } else { "each builds on the one before" },
        )
        .unwrap();
    }
    table
}

fn failing(spec: &ProfileSpec) -> String {
    match spec.failing {
        Failing::Blocks => "blocks where it can".to_owned(),
        Failing::BlocksOn(events) => format!("blocks on {}, else warns", names(events)),
        Failing::Warns => "warns; blocks on what fails closed".to_owned(),
    }
}

fn names(events: &[Event]) -> String {
    let names: Vec<String> =
        events.iter().filter(|event| !event.is_lane()).map(|event| format!("`{}`", event.name())).collect();
    names.join(", ")
}

fn tick(yes: bool) -> &'static str {
    if yes { "✓" } else { "" }
}

/// `ToolInput` as `tool_input`.
fn words(camel: &str) -> String {
    let mut words = String::new();
    for (place, letter) in camel.char_indices() {
        if letter.is_uppercase() && place > 0 {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// Holds the text between `<!-- NAME -->` and `<!-- end -->` against `table`, or writes it.
fn check(text: &str, name: &str, table: &str) -> Result<String, String> {
    let start = format!("<!-- {name} -->\n");
    let (before, rest) = text.split_once(&start).ok_or(format!("no {start:?} in docs/protocol.md"))?;
    let (_, after) = rest.split_once("<!-- end -->").ok_or("no end mark")?;
    Ok(format!("{before}{start}{table}<!-- end -->{after}"))
}

#[test]
fn the_protocol_page_shows_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut fresh = text.clone();
    for (name, table) in [("events", events_table()), ("fields", fields_table()), ("profiles", profiles_table())] {
        fresh = check(&fresh, name, &table).unwrap();
    }
    if std::env::var_os("GATEHOOK_WRITE").is_some() {
        std::fs::write(&path, &fresh).unwrap();
        return;
    }
    assert!(fresh == text, "docs/protocol.md is not what the catalogue says: run `cargo xtask generate`");
}
