//! `gatehook schema`: JSON Schema of the configuration and of payloads.

use gatehook_engine::{config, schema};
use gatehook_events::{Event, Profile};
use serde_json::Value;

use crate::args::SchemaArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;

/// Prints one schema.
pub(crate) fn run(args: &SchemaArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let schema = match args.what.as_str() {
        "config" => configuration(),
        "output" => schema::output(),
        name => match Event::from_name(name).filter(|event| !event.is_lane()) {
            Some(event) => schema::payload(event, Profile::Native),
            None => {
                let known = Event::all().map(Event::name).chain(["config", "output"]);
                let help = config::did_you_mean(name, known);
                return Err(Failure::usage(format!("there is no schema `{name}`"), help));
            }
        },
    };
    printer.document(&schema)?;
    Ok(Exit::Done)
}

/// A whole file: what the engine, the gateway and the agent read of it.
fn configuration() -> Value {
    let mut schema = gatehook_gateway::settings::schema();
    if let Some(sections) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        sections.extend(gatehook_agent::team::schema());
    }
    schema
}
