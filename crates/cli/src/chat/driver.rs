//! Brings both sides together: the session on a thread of its own, the terminal on this one.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use gatehook_agent::report::{Report, Watches};
use ignore::WalkBuilder;
use rustix::process::Signal as Posix;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Sender, channel, error::TrySendError};

use super::history::{History, HistoryFile};
use super::questions::Questions;
use super::theme::Theme;
use super::view::View;
use super::wire::{Command, End, Happening, Inbox, Outside, Reply, Signal, Told};
use super::{facts, plain, screen, session};
use crate::agent::{self, Audience, remembered};
use crate::args::ChatArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::places::home;
use crate::policy;
use crate::print::{Printer, colour};

/// Commands that wait at most.
const COMMANDS: usize = 256;

/// How long hooks may still hear that all is over.
const GRACE: Duration = Duration::from_secs(15);

/// Files that are offered for completion at most, and how long they are looked for.
const FILES: usize = 20_000;
const LOOKING: Duration = Duration::from_secs(2);

/// How a person is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meets {
    /// On a screen.
    Screen,
    /// Line by line, at a terminal that can do no more.
    Lines,
    /// Not at all: prompts come from a file or a pipe.
    Nobody,
}

impl Meets {
    fn now() -> Self {
        let (reads, writes) = (std::io::stdin().is_terminal(), std::io::stdout().is_terminal());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        match (reads, writes) {
            (true, true) if !is_dumb => Self::Screen,
            (true, _) if std::io::stderr().is_terminal() => Self::Lines,
            _ => Self::Nobody,
        }
    }
}

/// Runs `gatehook chat`.
pub(crate) fn run(args: &ChatArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let meets = Meets::now();
    let env = policy::environment();
    let inbox = Arc::new(Inbox::default());
    let workspace = std::env::current_dir()?.canonicalize()?;
    let rules_file = remembered::path(&env);
    let questions = Arc::new(Questions::new(inbox.clone(), workspace.clone(), rules_file.clone()));
    let audience = Audience {
        watcher: Arc::new(Tells(inbox.clone())),
        person: (meets != Meets::Nobody).then(|| Arc::clone(&questions) as _),
    };
    let ready = Arc::new(agent::ready(&args.agent, audience, printer)?);
    let facts = facts::facts(&ready, &env, &workspace, rules_file.as_deref());
    let (commands, heard) = channel(COMMANDS);
    let (listens, heard_of) = sync_channel(1);
    let led = {
        let (ready, inbox) = (ready.clone(), inbox.clone());
        let work = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| {
                agent::alone(async {
                    listen(inbox.clone(), meets)?;
                    // Who waits for this waits for nothing else.
                    let _ = listens.send(());
                    session::serve(&ready, facts, heard, inbox.clone()).await
                })
            }));
            // The panic has been shown where it happened.
            let defect = |_| Err(Failure::new(Exit::Defect, "the session was ended by a defect", None));
            let ended = ended.unwrap_or_else(defect).and_then(|ended| ended);
            inbox.tell(Told::Ended(ended.as_ref().err().map(ToString::to_string)));
            ended
        };
        std::thread::Builder::new().name("session".to_owned()).spawn(work)?
    };
    let mut outside = Doing::new(&env, &workspace, inbox.clone(), commands, questions);
    if let Some(prompt) = args.prompt.clone() {
        outside.command(Command::Prompt(prompt));
    }
    // From here on a signal is heard, and the terminal can be taken. Where none can be heard the session says why.
    let _ = heard_of.recv();
    let end = match meets {
        Meets::Screen => {
            let theme = Theme { colour: colour(&std::io::stdout()) };
            let history = History::new(outside.history.as_ref().map(HistoryFile::read).unwrap_or_default());
            let view = View::new(theme, screen::size(), history).at_work(args.prompt.clone());
            screen::run(view, &inbox, &mut outside)
        }
        Meets::Lines | Meets::Nobody => plain::run(&inbox, &mut outside, meets == Meets::Lines, args.prompt.is_some()),
    };
    outside.command(Command::Quit);
    drop(outside);
    let is_over = matches!(end, Ok(End::Session(_))) || is_over(&inbox);
    let served = if is_over { led.join().ok() } else { None };
    ready.finish(printer);
    let served = served.transpose()?;
    let worst = served.as_ref().map_or(Exit::Done, |served| served.worst);
    if let Some(id) = served.and_then(|served| served.last).filter(|_| meets != Meets::Nobody) {
        let short = id.get(..8).unwrap_or(&id);
        printer.note(&format!("`gatehook chat --resume {short}` goes on with this session"));
    }
    match end.map_err(|error| Failure::new(Exit::System, format!("the terminal cannot be used: {error}"), None))? {
        End::Quit if !is_over => Ok(Exit::Stopped),
        // A person has seen what failed.
        End::Quit => Ok(if meets == Meets::Nobody { worst } else { Exit::Done }),
        End::Stopped => Ok(Exit::Stopped),
        End::Session(why) => Err(Failure::new(Exit::Defect, why, None)),
    }
}

/// Waits until hooks have heard that all is over, or somebody has waited long enough.
fn is_over(inbox: &Inbox) -> bool {
    let Some(deadline) = Instant::now().checked_add(GRACE) else { return false };
    loop {
        let happenings = inbox.take(Some(deadline));
        if happenings.iter().any(|happening| matches!(happening, Happening::Told(Told::Ended(_)))) {
            return true;
        }
        let is_told = |happening: &Happening| matches!(happening, Happening::Signal(Signal::End | Signal::Interrupt));
        if happenings.iter().any(is_told) || Instant::now() >= deadline {
            return false;
        }
    }
}

/// Puts signals to what else happens.
fn listen(inbox: Arc<Inbox>, meets: Meets) -> std::io::Result<()> {
    let end = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()].map(|kind| (kind, Signal::End));
    // Where there is no screen the system does what stopping takes.
    let stop = [(Posix::TSTP, Signal::Stop), (Posix::CONT, Signal::Continue)];
    let stop = stop
        .into_iter()
        .filter(|_| meets == Meets::Screen)
        .map(|(kind, told)| (SignalKind::from_raw(kind.as_raw()), told));
    for (kind, told) in end.into_iter().chain([(SignalKind::interrupt(), Signal::Interrupt)]).chain(stop) {
        let (mut caught, inbox) = (signal(kind)?, inbox.clone());
        tokio::spawn(async move {
            while caught.recv().await.is_some() {
                inbox.put(Happening::Signal(told));
            }
        });
    }
    Ok(())
}

/// Tells the terminal what the session reports.
struct Tells(Arc<Inbox>);

impl Watches for Tells {
    fn report(&self, report: Report) {
        self.0.tell(Told::Report(report));
    }
}

/// Does what the terminal wants done.
struct Doing {
    inbox: Arc<Inbox>,
    commands: Sender<Command>,
    questions: Arc<Questions>,
    history: Option<HistoryFile>,
    workspace: PathBuf,
    is_looking: Arc<AtomicBool>,
}

impl Doing {
    fn new(
        env: &BTreeMap<String, String>,
        workspace: &Path,
        inbox: Arc<Inbox>,
        commands: Sender<Command>,
        questions: Arc<Questions>,
    ) -> Self {
        let history = home(env, "XDG_STATE_HOME", ".local/state").map(|folder| folder.join("gatehook/history"));
        let history = history.map(HistoryFile::new);
        Self { inbox, commands, questions, history, workspace: workspace.to_owned(), is_looking: Arc::default() }
    }

    fn warn(&self, text: String) {
        self.inbox.tell(Told::Report(Report::Notice { level: "warning", text: text.into() }));
    }
}

impl Outside for Doing {
    fn command(&mut self, command: Command) {
        match self.commands.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.warn("too many commands wait; this one is not taken".to_owned()),
            // It has ended, and says so itself.
            Err(TrySendError::Closed(_)) => {}
        }
    }

    fn answer(&mut self, number: u64, reply: Reply) {
        self.questions.answer(number, reply);
    }

    fn files(&mut self) {
        if self.is_looking.swap(true, Ordering::SeqCst) {
            return;
        }
        let (workspace, inbox, is_looking) = (self.workspace.clone(), self.inbox.clone(), self.is_looking.clone());
        let look = move || {
            inbox.tell(Told::Files(files(&workspace).into()));
            is_looking.store(false, Ordering::SeqCst);
        };
        // Without a thread nothing is offered.
        let _ = std::thread::Builder::new().name("files".to_owned()).spawn(look);
    }

    fn remember(&mut self, text: &str) {
        if let Some(Err(error)) = self.history.as_ref().map(|history| history.add(text)) {
            self.warn(format!("what you write is not remembered: {error}"));
            self.history = None;
        }
    }
}

/// The files below a folder that no ignore file hides, folders with a slash at their end.
fn files(workspace: &Path) -> Vec<String> {
    let begun = Instant::now();
    let mut walk = WalkBuilder::new(workspace);
    walk.hidden(false)
        .require_git(false)
        .add_custom_ignore_filename(".ollamaignore")
        .filter_entry(|entry| entry.file_name() != ".git");
    let entries = walk.build().take_while(|_| begun.elapsed() < LOOKING).flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.path().strip_prefix(workspace).ok()?.to_str()?.to_owned();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some(if is_folder { format!("{name}/") } else { name })
            .filter(|name| name.len() > 1 && !name.contains(char::is_control))
    });
    let mut names: Vec<_> = names.take(FILES).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_not_offered() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            (".gitignore", "target\n"),
            (".ollamaignore", "*.key\n"),
            ("src/a.rs", ""),
            ("b.key", ""),
            ("target/x", ""),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(files(folder.path()), [".gitignore", ".ollamaignore", "src/", "src/a.rs"]);
    }
}
