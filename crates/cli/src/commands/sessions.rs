//! `gatehook sessions`: lists, shows, exports and removes what the agent kept.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use gatehook_agent::conversation::Conversation;
use gatehook_agent::export::{to_json_lines, to_markdown};
use gatehook_engine::text;
use gatehook_events::journal::Kept;
use gatehook_store::{Filter, Listed, SessionArchive};
use jiff::Unit;
use serde_json::{Value, json};

use crate::args::{ExportFormat, SessionsArgs, SessionsCommand, SessionsListArgs};
use crate::commands::trace::when;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy;
use crate::print::Printer;
use crate::sessions::{archive, missing, named};
use crate::table::Table;

/// Runs `sessions`.
pub(crate) fn run(args: &SessionsArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let archive = archive(&policy::environment())?;
    let Some(command) = &args.command else {
        list(archive.as_ref(), &args.list, printer)?;
        return Ok(Exit::Done);
    };
    let known = |id: &str| archive.as_ref().ok_or_else(|| missing(id));
    match command {
        SessionsCommand::Show { id, json } => show(known(id)?, id, *json, printer)?,
        SessionsCommand::Export { id, format, output } => {
            export(known(id)?, id, *format, output.as_deref(), printer)?;
        }
        SessionsCommand::Rm { ids } => {
            for id in ids {
                remove(known(id)?, id, printer)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn list(archive: Option<&SessionArchive>, args: &SessionsListArgs, printer: &mut Printer) -> Result<(), Failure> {
    let listed = match archive {
        Some(archive) => archive.list(&filter(archive, args)?)?,
        None => Vec::new(),
    };
    if args.json {
        return printer.json(&listed.iter().map(json).collect::<Vec<_>>());
    }
    if listed.is_empty() {
        printer.note("no session is kept like that");
        return Ok(());
    }
    let mut table = Table::new(&["ID", "WHEN", "TURNS", "AGENT", "MODEL", "WORKSPACE", "PROMPT"]);
    for Listed { head, touched, turns, prompt } in listed {
        table.row([
            head.id.to_string(),
            when(touched, Unit::Second),
            turns.to_string(),
            head.agent.to_string(),
            head.model.to_string(),
            head.workspace.to_string(),
            prompt.as_deref().unwrap_or("-").to_owned(),
        ]);
    }
    printer.text(&table)
}

fn filter(archive: &SessionArchive, args: &SessionsListArgs) -> Result<Filter, Failure> {
    let workspace = args.workspace.as_ref().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
    let parent = args.parent.as_ref().map(|id| named(archive, id)).transpose()?;
    Ok(Filter {
        workspace: workspace.map(|folder| folder.to_string_lossy().into()),
        parent: parent.map(|session| session.head.id),
        limit: args.limit,
        ..Filter::default()
    })
}

fn json(session: &Listed) -> Value {
    let Listed { head, touched, turns, prompt } = session;
    json!({
        "id": head.id, "parent": head.parent, "workspace": head.workspace, "agent": head.agent, "model": head.model,
        "started": millisecond(head.started), "touched": millisecond(*touched), "turns": turns, "prompt": prompt,
    })
}

fn millisecond(time: SystemTime) -> String {
    when(time, Unit::Millisecond)
}

/// A session and all that is kept of it.
fn whole(archive: &SessionArchive, id: &str) -> Result<(Listed, Vec<Kept>), Failure> {
    let session = named(archive, id)?;
    let entries = archive.entries(&session.head.id, 1)?;
    Ok((session, entries))
}

/// As it would stand if it were resumed.
fn conversation(session: &Listed, entries: &[Kept]) -> Conversation {
    let mut conversation = Conversation::of(&session.head, entries.iter().map(|kept| &kept.entry));
    conversation.close();
    conversation
}

fn show(archive: &SessionArchive, id: &str, as_json: bool, printer: &mut Printer) -> Result<(), Failure> {
    let (session, entries) = whole(archive, id)?;
    if as_json {
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        return printer.json(&json!({"session": json(&session), "entries": entries}));
    }
    let conversation = conversation(&session, &entries);
    printer.text(&text::plain(&to_markdown(&session.head, &conversation)))?;
    if conversation.is_interrupted() {
        printer.note("the last turn did not end");
    }
    Ok(())
}

fn entry(kept: &Kept) -> Value {
    let mut entry = json!(kept.entry);
    if let Some(fields) = entry.as_object_mut() {
        fields.insert("place".to_owned(), kept.place.into());
        fields.insert("time".to_owned(), millisecond(kept.time).into());
    }
    entry
}

fn export(
    archive: &SessionArchive,
    id: &str,
    format: ExportFormat,
    output: Option<&Path>,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let (session, entries) = whole(archive, id)?;
    let conversation = conversation(&session, &entries);
    let page = match format {
        ExportFormat::Jsonl => to_json_lines(&conversation).map_err(|error| Failure::output(&error.into()))?,
        ExportFormat::Markdown => to_markdown(&session.head, &conversation),
    };
    match output {
        Some(path) => write(path, &page),
        // What a model said must not reach a terminal as it is.
        None if std::io::stdout().is_terminal() => printer.text(&text::plain(&page)),
        None => printer.text(&page),
    }
}

/// Writes a file that is its owner's alone, where it is new: sessions hold secrets.
fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(page.as_bytes())).map_err(|error| {
        let help = "`-o` names another file".to_owned();
        Failure::new(Exit::System, format!("{} cannot be written: {error}", path.display()), Some(help))
    })
}

fn remove(archive: &SessionArchive, id: &str, printer: &mut Printer) -> Result<(), Failure> {
    let session = named(archive, id)?;
    for id in archive.remove(&session.head.id)? {
        printer.note(&format!("removed {id}"));
    }
    Ok(())
}
