//! `gatehook run`: the agent without a person.

use std::io::Read as _;
use std::sync::Arc;

use gatehook_agent::session::Reason;

use crate::agent::headless::Headless;
use crate::agent::{self, Audience, Begun};
use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;

/// Bytes of a prompt on standard input.
const PROMPT: u64 = 8 << 20;

/// Does what the prompt says, and ends the session.
pub(crate) fn run(args: &RunArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let prompt = prompt(args)?;
    let audience = Audience { watcher: Arc::new(Headless::new(args.json)), person: None };
    let ready = agent::ready(&args.agent, audience, printer)?;
    let done = agent::lead(async |cancel| {
        let Begun { mut session, note } = ready.session().await?;
        note.into_iter().for_each(|note| ready.setup().watcher.report(note));
        let done = session.prompt(&prompt, cancel).await;
        session.end(if done.reason == Reason::Error { "error" } else { "other" }).await;
        ready.close().await;
        Ok::<_, Failure>(done)
    })?;
    ready.finish(printer);
    Ok(done.transpose()?.map_or(Exit::Stopped, |done| done.reason.into()))
}

fn prompt(args: &RunArgs) -> Result<String, Failure> {
    let given = args.prompt.clone().filter(|prompt| prompt != "-");
    let prompt = match given {
        Some(prompt) => prompt,
        None => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(PROMPT + 1).read_to_string(&mut text);
            read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}"), None))?;
            text
        }
    };
    if prompt.len() as u64 > PROMPT {
        return Err(Failure::usage(format!("the prompt is longer than {PROMPT} bytes"), None));
    }
    if prompt.trim().is_empty() {
        let help = "say what the agent is to do, as in `gatehook run \"Explain this folder\"`";
        return Err(Failure::usage("there is no prompt", Some(help.to_owned())));
    }
    Ok(prompt)
}
