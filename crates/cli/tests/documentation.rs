//! The tables of `docs/*.md` and `docs/gatehook.schema.json` are made from the tables that the program reads by. Set
//! `GATEHOOK_WRITE=1` to write them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

#[path = "../src/environment.rs"]
#[allow(dead_code, reason = "only the tables are documented")]
mod environment;

#[path = "../src/owned.rs"]
mod owned;

#[path = "../src/places.rs"]
#[allow(dead_code, unused_imports, reason = "only the table is documented")]
mod places;

use std::path::{Path, PathBuf};
use std::process::Command;

use gatehook_agent::session::MOMENTS;
use gatehook_agent::team::fields as agents;
use gatehook_dialects::{ollama_cli, ollm};
use gatehook_engine::builtins::{BUILTINS, Builtin};
use gatehook_engine::config::fields::{
    CONDITIONS, DEFAULTS, FILE, GROUP, HOOK, REPLY, REQUEST, REWRITE, RULE, SANDBOX, STREAM, TRACES, TYPE,
};
use gatehook_engine::config::{Field, IMPORT, OLLAMA_VARIABLES, Shape, Variable};
use gatehook_engine::events::input::FIELDS;
use gatehook_engine::events::{Event, Profile};
use gatehook_engine::handlers::webhook::{CONTRACTS, Terms};
use gatehook_gateway::settings;

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Holds a file against what it should be, or writes it.
fn check(path: &Path, fresh: &str) {
    if std::env::var_os("GATEHOOK_WRITE").is_some() {
        std::fs::write(path, fresh).unwrap();
        return;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    assert!(text == fresh, "{} is not what the tables say: run `cargo xtask generate`", path.display());
}

/// `text` with `part` between `<!-- NAME -->` and `<!-- end -->`.
fn put(text: &str, name: &str, part: &str) -> String {
    let start = format!("<!-- {name} -->\n");
    let (before, rest) = text.split_once(&start).unwrap_or_else(|| panic!("there is no {start:?}"));
    let (_, after) = rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("{name} has no end"));
    format!("{before}{start}{part}<!-- end -->{after}")
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn codes(words: &[&str]) -> String {
    words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", ")
}

fn shape(shape: Shape) -> String {
    match shape {
        Shape::Bool => "`true`, `false`".to_owned(),
        Shape::Integer => "whole number".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Name => "text, or a number".to_owned(),
        Shape::Size => "size".to_owned(),
        Shape::Duration => "length of time".to_owned(),
        Shape::Age => "length of time, or days as in `7d`".to_owned(),
        Shape::Word(words) => codes(words),
        Shape::Texts => "list of texts".to_owned(),
        Shape::TextOrTexts => "text, or a list of texts".to_owned(),
        Shape::TextMap => "names and texts".to_owned(),
        Shape::PatternMap => "fields and patterns".to_owned(),
        Shape::SecretMap => "names and texts, or `{file: PATH}`".to_owned(),
        Shape::Secrets => "text or `{file: PATH}`, or a list of them".to_owned(),
        Shape::NumberMap => "names and numbers".to_owned(),
        Shape::Json => "any value".to_owned(),
        Shape::WordOrTexts(words, key) => format!("{}, `{{{key}: [NAME, …]}}`", codes(words)),
        Shape::Table(_) | Shape::NamedTables(_) | Shape::Any => "mapping".to_owned(),
        Shape::Tables(_) => "list".to_owned(),
        Shape::Hooks => "hook, or list of hooks".to_owned(),
    }
}

/// A default that is a value stands as code, one that is a phrase as it is.
fn default(default: &str) -> String {
    if default.is_empty() || default.contains(' ') { default.to_owned() } else { code(default) }
}

fn fields(fields: &[Field]) -> String {
    let typed = fields.iter().any(|field| !field.only.is_empty());
    let mut table = if typed {
        String::from("| field | type | value | default | what it says |\n|---|---|---|---|---|\n")
    } else {
        String::from("| field | value | default | what it says |\n|---|---|---|---|\n")
    };
    for field in fields {
        let kinds = if typed { format!("{} | ", codes(field.only)) } else { String::new() };
        let (value, default) = (shape(field.shape), default(field.default));
        table.push_str(&format!("| `{}` | {kinds}{value} | {default} | {} |\n", field.name, field.doc));
    }
    table
}

fn variables<'a>(variables: impl Iterator<Item = &'a Variable>) -> String {
    let rows = variables.map(|it| format!("| `{}` | {} | {} |\n", it.name, default(it.default), it.doc));
    std::iter::once("| variable | default | what it says |\n|---|---|---|\n".to_owned()).chain(rows).collect()
}

fn builtins() -> String {
    let events = |events: &[Event]| {
        let names: Vec<&str> = events.iter().map(|event| event.name()).collect();
        if names.is_empty() { "all".to_owned() } else { codes(&names) }
    };
    let row = |it: &Builtin| format!("| `{}` | {} | {} | {} |\n", it.name, events(it.events), it.doc, it.args);
    let head = "| `command` | events | what it does | `args` |\n|---|---|---|---|\n".to_owned();
    std::iter::once(head).chain(BUILTINS.iter().map(row)).collect()
}

fn places() -> String {
    let rows = places::table().map(|[place, source, dialect]| format!("| {place} | {source} | `{dialect}` |\n"));
    std::iter::once("| file | source | dialect |\n|---|---|---|\n".to_owned()).chain(rows).collect()
}

/// The types of hooks, with the fields that they alone have.
fn types() -> String {
    let mut table = String::from("| `type` | is told of an event | answers | its own fields |\n|---|---|---|---|\n");
    for (name, [told, answers]) in TYPE {
        let own: Vec<&str> = HOOK.iter().filter(|it| it.only.contains(&name)).map(|it| it.name).collect();
        table.push_str(&format!("| [`{name}`](configuration.md#{name}) | {told} | {answers} | {} |\n", codes(&own)));
    }
    table
}

/// The builtins by event.
fn builtin_events() -> String {
    let named = |builtins: Vec<&str>| {
        let link = |name: &&str| format!("[`{name}`](builtins.md#{name})");
        builtins.iter().map(link).collect::<Vec<_>>().join(", ")
    };
    let on = |event: Event| BUILTINS.iter().filter(|it| it.events.contains(&event)).map(|it| it.name).collect();
    let everywhere = BUILTINS.iter().filter(|it| it.events.is_empty()).map(|it| it.name).collect();
    let mut table = String::from("| event | builtins |\n|---|---|\n");
    for event in Event::all().filter(|event| !event.is_lane()) {
        let builtins = named(on(event));
        if !builtins.is_empty() {
            table.push_str(&format!("| `{}` | {builtins} |\n", event.name()));
        }
    }
    table.push_str(&format!("| every event | {} |\n", named(everywhere)));
    table
}

/// Fields of a native payload, and where they stand in those of others.
fn elsewhere() -> String {
    let mut table = String::from("| field | Ollama CLI | OLLM CLI |\n|---|---|---|\n");
    let places = |of: &dyn Fn(Event) -> Vec<(&'static str, &'static str)>, field: &str| {
        let rows = Event::all().flat_map(of);
        let here = rows.filter(|(_, fact)| fact.split('.').next() == Some(field)).map(|(place, _)| place);
        codes(&here.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>())
    };
    for field in FIELDS {
        let there = places(&|event| ollama_cli::places(event).collect(), field.name);
        let ollm = places(&|event| ollm::places(event).collect(), field.name);
        if !(there.is_empty() && ollm.is_empty()) {
            table.push_str(&format!("| `{}` | {there} | {ollm} |\n", field.name));
        }
    }
    table
}

#[test]
fn the_protocol_page_shows_types_builtins_and_fields_of_others() {
    let path = docs("protocol.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (name, part) in [("types", types()), ("builtins", builtin_events()), ("elsewhere", elsewhere())] {
        text = put(&text, name, &part);
    }
    check(&path, &text);
}

fn moments() -> String {
    let mut table = String::from("| event | when | its own fields | what the verdict does |\n|---|---|---|---|\n");
    for moment in MOMENTS {
        let own: Vec<&str> = moment.fields().map(|field| field.name).collect();
        let (name, when, obeyed) = (moment.event.name(), moment.when, moment.obeyed);
        table.push_str(&format!("| `{name}` | {when} | {} | {obeyed} |\n", codes(&own)));
    }
    table
}

#[test]
fn the_page_of_events_shows_their_moments() {
    let path = docs("events.md");
    let text = std::fs::read_to_string(&path).unwrap();
    check(&path, &put(&text, "moments", &moments()));
}

#[test]
fn the_configuration_page_shows_the_tables() {
    let path = docs("configuration.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let conditions = format!("{} and `tool_input.NAME`.\n", codes(CONDITIONS));
    let file: Vec<Field> = settings::FILE.iter().chain(agents::FILE).chain(FILE).copied().collect();
    for (name, part) in [
        ("environment", variables(environment::serve())),
        ("places", places()),
        ("file", fields(&file)),
        ("import", fields(IMPORT)),
        ("listen", fields(settings::LISTEN)),
        ("upstream", fields(settings::UPSTREAM)),
        ("key", fields(settings::KEY)),
        ("model", fields(settings::MODEL)),
        ("limits", fields(settings::LIMITS)),
        ("streams", fields(settings::STREAMS)),
        ("traces", fields(TRACES)),
        ("agent", fields(agents::AGENT)),
        ("agents", fields(agents::AGENTS)),
        ("toolset", fields(agents::TOOLSET)),
        ("remote", fields(agents::REMOTE)),
        ("server", fields(agents::SERVER)),
        ("permissions", fields(agents::PERMISSIONS)),
        ("defaults", fields(DEFAULTS)),
        ("group", fields(GROUP)),
        ("hook", fields(HOOK)),
        ("stream", fields(STREAM)),
        ("sandbox", fields(SANDBOX)),
        ("builtins", builtins()),
        ("conditions", conditions),
    ] {
        text = put(&text, name, &part);
    }
    check(&path, &text);
}

fn contracts() -> String {
    let mut table = String::from(
        "| `contract` | events | `url` without a path | what is sent | what the reply means |\n|---|---|---|---|---|\n",
    );
    for terms in &CONTRACTS {
        let name = match terms.source {
            "protocol.md" => code(terms.contract.name()),
            source => format!("[`{}`]({source})", terms.contract.name()),
        };
        let row = [name, events(terms), paths(terms), terms.request.to_owned(), terms.reply.to_owned()];
        table.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    table
}

fn events(terms: &Terms) -> String {
    let known = terms.events.iter().flat_map(|group| group.iter()).filter(|event| !event.is_lane());
    let names: Vec<&str> = known.map(|event| event.name()).collect();
    if names.is_empty() { "every event".to_owned() } else { codes(&names) }
}

fn paths(terms: &Terms) -> String {
    match terms.paths {
        ["", _] => String::new(),
        [before, after] if before == after => code(before),
        [before, after] => format!("`{before}`; after the model `{after}`"),
    }
}

fn parameters() -> String {
    let mut table =
        String::from("| `contract` | parameter | value | default | what it says |\n|---|---|---|---|---|\n");
    for terms in &CONTRACTS {
        for field in terms.parameters {
            let (name, value) = (terms.contract.name(), shape(field.shape));
            let default = default(field.default);
            table.push_str(&format!("| `{name}` | `{}` | {value} | {default} | {} |\n", field.name, field.doc));
        }
    }
    table
}

#[test]
fn the_page_on_webhooks_shows_the_contracts() {
    let path = docs("webhooks.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (name, part) in [
        ("contracts", contracts()),
        ("parameters", parameters()),
        ("request", fields(REQUEST)),
        ("reply", fields(REPLY)),
        ("rewrite", fields(REWRITE)),
        ("rule", fields(RULE)),
    ] {
        text = put(&text, name, &part);
    }
    check(&path, &text);
}

#[test]
fn every_builtin_has_a_section_with_an_example() {
    let text = std::fs::read_to_string(docs("builtins.md")).unwrap();
    for builtin in BUILTINS {
        let section = text.split_once(&format!("\n### {}\n", builtin.name)).map(|(_, rest)| rest);
        let section = section.and_then(|rest| rest.split("\n### ").next()).unwrap_or_default();
        assert!(section.contains(&format!("command: {}", builtin.name)), "{}", builtin.name);
    }
}

#[test]
fn the_webhook_page_shows_the_variables() {
    let path = docs("ollama-webhooks.md");
    let text = std::fs::read_to_string(&path).unwrap();
    check(&path, &put(&text, "variables", &variables(OLLAMA_VARIABLES.iter())));
}

#[test]
fn the_schema_is_what_the_program_prints() {
    let printed = Command::new(env!("CARGO_BIN_EXE_gatehook")).arg("schema").output().unwrap();
    check(&docs("gatehook.schema.json"), &String::from_utf8(printed.stdout).unwrap());
}

/// The row of a page's table on payloads that is about an event, with the row that it refers to.
fn row<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let found = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
    let found = found.unwrap_or_else(|| panic!("{name} has no row"));
    let other = found.split_once("those of `").and_then(|(_, rest)| rest.split('`').next());
    other.map_or_else(Vec::new, |other| row(page, other)).into_iter().chain([found]).collect()
}

#[test]
fn the_pages_of_other_programs_name_every_place_of_their_payloads() {
    type Places = fn(Event) -> Vec<(&'static str, &'static str)>;
    let pages: [(&str, Profile, Places); 2] = [
        ("ollama-cli.md", Profile::OllamaCli, |event| ollama_cli::places(event).collect()),
        ("ollm.md", Profile::Ollm, |event| ollm::places(event).collect()),
    ];
    for (page, profile, places) in pages {
        let text = std::fs::read_to_string(docs(page)).unwrap();
        for event in Event::all() {
            let Some(name) = event.name_in(profile) else { continue };
            let rows = row(&text, name);
            for word in places(event).iter().flat_map(|(place, _)| place.split('.')) {
                assert!(rows.iter().any(|row| row.contains(&code(word))), "{page}: `{name}` has `{word}`");
            }
        }
    }
}
