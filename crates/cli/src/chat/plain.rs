//! The agent without a screen: prompts come line by line, answers go to standard output as they are said, and all else to
//! standard error.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use gatehook_agent::approval::Answer;
use gatehook_agent::report::Report;
use gatehook_events::{OutcomeKind, Verb};

use super::clean;
use super::transcript::{arguments, duration};
use super::view::slash::{self, Does, SLASHES, Slash};
use super::view::{Dialog, TRUST};
use super::wire::{Ask, Command, End, Facts, Happening, Inbox, Outside, Reply, Signal, Told};

/// Bytes of one line of input at most.
const LINE: u64 = 1024 * 1024;

/// Lines of a result that are printed.
const RESULT: usize = 3;

/// What is written where.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Out {
    /// What the model says.
    Answer(String),
    /// All else, a line each.
    Aside(String),
}

/// What is known while lines go in and out.
#[derive(Debug, Default)]
struct Plain {
    facts: Facts,
    busy: bool,
    is_stopping: bool,
    /// What has been said of the answer so far.
    said: String,
    /// Whether the last thing on standard output ended with its line.
    is_mid_line: bool,
    questions: VecDeque<(u64, Ask)>,
    calls: HashMap<Arc<str>, String>,
    /// Lines that go on in the next one.
    begun: String,
}

/// Runs until the input ends, or the person or the session does.
///
/// `asks` says whether somebody is there to answer questions.
/// `busy` says whether it has been told what to do first.
pub(crate) fn run(inbox: &Arc<Inbox>, outside: &mut dyn Outside, asks: bool, busy: bool) -> io::Result<End> {
    let (wants, wanted) = sync_channel(1);
    listen(inbox.clone(), wanted)?;
    let mut plain = Plain { busy, ..Plain::default() };
    let mut is_reading = false;
    loop {
        let needs_line = !plain.busy || !plain.questions.is_empty();
        if needs_line && !is_reading {
            is_reading = want(&wants);
            if asks {
                write(&[Out::Aside(plain.prompt())])?;
            }
        }
        for happening in inbox.take(None) {
            match happening {
                Happening::Line(Some(line)) => {
                    is_reading = false;
                    match plain.line(&line, outside) {
                        Some(said) => write(&said)?,
                        None => return Ok(End::Quit),
                    }
                }
                Happening::Line(None) => return Ok(End::Quit),
                Happening::Told(Told::Ended(why)) => return Ok(why.map_or(End::Quit, End::Session)),
                Happening::Told(Told::Ready(_)) if plain.is_stopping && !asks => return Ok(End::Stopped),
                Happening::Told(told) => write(&plain.told(told))?,
                Happening::Signal(Signal::Interrupt) if plain.busy && !plain.is_stopping => {
                    plain.is_stopping = true;
                    outside.command(Command::Interrupt);
                }
                Happening::Signal(Signal::Interrupt | Signal::End) => return Ok(End::Stopped),
                Happening::Lost(why) => return Err(io::Error::other(why)),
                Happening::Signal(_) | Happening::Key(_) | Happening::Paste(_) | Happening::Resized => {}
            }
        }
    }
}

/// Asks for one more line; the reader reads none unasked, so that no input is larger in memory than what is at work.
fn want(wants: &SyncSender<()>) -> bool {
    // A reader that is gone has told its end.
    wants.try_send(()).is_ok()
}

fn listen(inbox: Arc<Inbox>, wanted: Receiver<()>) -> io::Result<()> {
    let read = move || {
        while wanted.recv().is_ok() {
            let mut line = Vec::new();
            let read = io::stdin().lock().take(LINE).read_until(b'\n', &mut line);
            inbox.put(match read {
                Ok(0) => Happening::Line(None),
                Ok(_) => {
                    Happening::Line(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()))
                }
                Err(error) => Happening::Lost(format!("standard input cannot be read: {error}")),
            });
        }
    };
    std::thread::Builder::new().name("lines".to_owned()).spawn(read).map(drop)
}

fn write(said: &[Out]) -> io::Result<()> {
    for out in said {
        match out {
            Out::Answer(text) => {
                let mut to = io::stdout().lock();
                to.write_all(text.as_bytes()).and_then(|()| to.flush())?;
            }
            // There is nobody left to tell when standard error is closed.
            Out::Aside(text) => drop(writeln!(io::stderr().lock(), "{text}")),
        }
    }
    Ok(())
}

impl Plain {
    fn prompt(&self) -> String {
        match self.questions.front() {
            Some((_, Ask::Permission(_))) => "y once, s for the session, or n and a reason:".to_owned(),
            Some((_, Ask::GoOn(_) | Ask::Doubt(_))) => "y goes on, n stops:".to_owned(),
            None => "you:".to_owned(),
        }
    }

    /// What the person wrote: an answer, a command, a prompt. `None` where they leave.
    fn line(&mut self, line: &str, outside: &mut dyn Outside) -> Option<Vec<Out>> {
        if let Some((number, ask)) = self.questions.pop_front() {
            match reply(&ask, line) {
                Some(reply) => outside.answer(number, reply),
                None => self.questions.push_front((number, ask)),
            }
            return Some(Vec::new());
        }
        if let Some(line) = line.strip_suffix('\\') {
            self.begun.push_str(line);
            self.begun.push('\n');
            return Some(Vec::new());
        }
        let text = std::mem::take(&mut self.begun) + line;
        if text.trim().is_empty() {
            return Some(Vec::new());
        }
        match slash::read(&text, &self.facts) {
            Some(Ok((slash, argument))) => self.slash(slash, argument, outside),
            Some(Err(problem)) => Some(vec![Out::Aside(problem)]),
            None => {
                outside.remember(&text);
                self.begin(Command::Prompt(slash::said(text)), outside);
                Some(Vec::new())
            }
        }
    }

    fn begin(&mut self, command: Command, outside: &mut dyn Outside) {
        self.busy = true;
        outside.command(command);
    }

    fn slash(&mut self, slash: &Slash, argument: &str, outside: &mut dyn Outside) -> Option<Vec<Out>> {
        let lines = match slash.does {
            Does::Quit => return None,
            Does::Hooks => self.facts.hooks.clone(),
            Does::Trust => vec![TRUST.to_owned()],
            Does::Help => {
                let own = SLASHES.iter().map(|slash| (slash.name, slash.about));
                let prompts = self.facts.prompts.iter().map(|prompt| (&*prompt.name, &*prompt.about));
                own.chain(prompts).map(|(name, about)| format!("/{name:8} {about}")).collect()
            }
            Does::Asks(command) => {
                self.begin(command(), outside);
                Vec::new()
            }
            Does::Picks(command) if !argument.is_empty() => {
                self.begin(command(argument.to_owned()), outside);
                Vec::new()
            }
            Does::Picks(_) => {
                let choices = slash.takes.choices(&self.facts);
                choices.iter().map(|choice| format!("/{} {}  {}", slash.name, choice.name, choice.about)).collect()
            }
        };
        Some(lines.iter().map(|line| Out::Aside(clean::shown(line).into_owned())).collect())
    }

    fn told(&mut self, told: Told) -> Vec<Out> {
        match told {
            Told::Report(report) => self.report(report, ""),
            Told::Asked(number, ask) => {
                let mut said = self.end_line();
                said.extend(describe(&ask));
                self.questions.push_back((number, ask));
                said
            }
            Told::Unasked(number) => {
                self.questions.retain(|(waiting, _)| *waiting != number);
                Vec::new()
            }
            Told::Facts(facts) => {
                self.facts = facts;
                Vec::new()
            }
            Told::Ready(_) => {
                self.busy = false;
                self.is_stopping = false;
                self.end_line()
            }
            Told::Begun | Told::Files(_) | Told::Ended(_) => Vec::new(),
        }
    }

    /// What a report says, the agent's name before it where it is a subagent's.
    fn report(&mut self, report: Report, who: &str) -> Vec<Out> {
        let line = match report {
            Report::Text { delta } if who.is_empty() => {
                self.said.push_str(&delta);
                return self.answer(&delta);
            }
            Report::Message { text } if who.is_empty() => return self.whole(&text),
            Report::Subagent { agent, report, .. } => {
                return self.report(*report, &format!("{who}{}: ", clean::line(&agent)));
            }
            Report::Session { agent, model, workspace, .. } => format!("◆ {agent} · {model} · {workspace}"),
            Report::ToolCall { id, name, input } => {
                let call = format!("{} {}", clean::line(&name), arguments(&input, false));
                self.calls.insert(id, call.clone());
                format!("○ {call}")
            }
            Report::Approval { id, decision, source, .. } if &*decision != "allow" => {
                format!("⊘ {} ({decision} by {source})", self.calls.get(&id).map(String::as_str).unwrap_or_default())
            }
            Report::ToolResult { id, name, output, error, diff, duration: took } => {
                let call = self.calls.remove(&id).unwrap_or_else(|| clean::line(&name).into_owned());
                let took = duration(Duration::try_from_secs_f64(took).unwrap_or_default());
                let (mark, what) = error.map_or(("✓", String::new()), |error| ("✗", format!("{error}, ")));
                let diff = diff.filter(|diff| !diff.is_empty());
                let text = clean::printed(diff.as_deref().unwrap_or(&output)).into_owned();
                let most = if diff.is_some() { usize::MAX } else { RESULT };
                let more = text.trim_end().lines().count().saturating_sub(most);
                let lines = text.trim_end().lines().take(most).map(|line| format!("\n  │ {line}"));
                let more = if more > 0 { format!("\n  … {more} more lines") } else { String::new() };
                format!("{mark} {call} ({what}{took}){}{more}", lines.collect::<String>())
            }
            Report::Hooks { event, outcomes, system_message, .. } => {
                let objections =
                    outcomes.iter().filter(|outcome| outcome.verb != Verb::Allow || outcome.kind != OutcomeKind::Ok);
                let lines = objections.map(|outcome| {
                    let reason =
                        if outcome.reason.is_empty() { String::new() } else { format!(": {}", outcome.reason) };
                    format!("⚙ {event} {} {} {}{reason}", outcome.name, outcome.verb.name(), duration(outcome.duration))
                });
                let lines: Vec<_> = lines.chain(system_message.lines().map(|line| format!("⚙ {line}"))).collect();
                if lines.is_empty() {
                    return Vec::new();
                }
                lines.join("\n")
            }
            Report::Notice { level, text } => format!("{level}: {text}"),
            Report::Compaction { source, .. } => format!("≡ the conversation was compacted ({source})"),
            Report::AgentSwitch { from, to, .. } => format!("→ {from} to {to}"),
            Report::TurnEnd { reason: "canceled" } => "! interrupted".to_owned(),
            _ => return Vec::new(),
        };
        let mut said = self.end_line();
        said.push(Out::Aside(format!("{who}{}", clean::printed(&line))));
        said
    }

    fn answer(&mut self, text: &str) -> Vec<Out> {
        let text = clean::printed(text).into_owned();
        if text.is_empty() {
            return Vec::new();
        }
        self.is_mid_line = !text.ends_with('\n');
        vec![Out::Answer(text)]
    }

    /// The answer is whole: what has not been said yet is, and what hooks changed late is said once more.
    fn whole(&mut self, text: &str) -> Vec<Out> {
        let said = std::mem::take(&mut self.said);
        let mut out = match text.strip_prefix(&*said) {
            Some(rest) => self.answer(rest),
            None => {
                let mut out = self.end_line();
                out.push(Out::Aside("⚙ hooks changed the answer:".to_owned()));
                out.extend(self.answer(text));
                out
            }
        };
        out.extend(self.end_line());
        out
    }

    fn end_line(&mut self) -> Vec<Out> {
        if std::mem::take(&mut self.is_mid_line) { vec![Out::Answer("\n".to_owned())] } else { Vec::new() }
    }
}

/// A question and all that it is about.
fn describe(ask: &Ask) -> Vec<Out> {
    let dialog = Dialog::new(0, ask.clone(), Duration::ZERO);
    let (title, label) = dialog.title();
    let label = label.map(|(label, _)| format!(" [{label}]")).unwrap_or_default();
    let plain = super::theme::Theme { colour: false };
    let body = dialog.body(u16::MAX, plain).iter().map(ToString::to_string).map(Out::Aside).collect::<Vec<_>>();
    std::iter::once(Out::Aside(format!("? {title}{label}"))).chain(body).collect()
}

/// What a line answers; `None` where it answers nothing.
fn reply(ask: &Ask, line: &str) -> Option<Reply> {
    let line = line.trim();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let answer = match (ask, word) {
        (Ask::GoOn(_) | Ask::Doubt(_), "y") => return Some(Reply::GoOn(true)),
        (Ask::GoOn(_) | Ask::Doubt(_), "n") => return Some(Reply::GoOn(false)),
        (Ask::GoOn(_) | Ask::Doubt(_), _) => return None,
        (Ask::Permission(_), "y") => Answer::Approve,
        (Ask::Permission(_), "s") => Answer::ApproveTool(None),
        (Ask::Permission(_), "n") => Answer::Reject { reason: rest.trim().to_owned() },
        (Ask::Permission(_), _) => return None,
    };
    Some(Reply::Permission { answer, remember: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Notes(Vec<Command>, Vec<Reply>);

    impl Outside for Notes {
        fn command(&mut self, command: Command) {
            self.0.push(command);
        }

        fn answer(&mut self, _: u64, reply: Reply) {
            self.1.push(reply);
        }

        fn files(&mut self) {}

        fn remember(&mut self, _: &str) {}
    }

    fn answers(reports: Vec<Report>) -> (String, String) {
        let mut plain = Plain::default();
        let (mut answer, mut aside) = (String::new(), String::new());
        for out in reports.into_iter().flat_map(|report| plain.told(Told::Report(report))) {
            match out {
                Out::Answer(text) => answer.push_str(&text),
                Out::Aside(text) => aside.push_str(&format!("{text}\n")),
            }
        }
        (answer, aside)
    }

    #[test]
    fn answers_go_to_standard_output_and_nothing_else_does() {
        let reports = vec![
            Report::Text { delta: "one \u{1b}[31mtwo".into() },
            Report::ToolCall { id: "1".into(), name: "bash".into(), input: Arc::default() },
            Report::Message { text: "one \u{1b}[31mtwo".into() },
            Report::ToolResult {
                id: "1".into(),
                name: "bash".into(),
                output: "a\nb\nc\nd\n\u{7}".into(),
                error: None,
                diff: None,
                duration: 0.5,
            },
        ];
        let (answer, aside) = answers(reports);
        assert_eq!(answer, "one two\n");
        assert_eq!(aside, "○ bash \n✓ bash  (500 ms)\n  │ a\n  │ b\n  │ c\n  … 2 more lines\n");
    }

    #[test]
    fn an_answer_that_hooks_changed_is_said_once_more() {
        let (answer, aside) =
            answers(vec![Report::Text { delta: "key 123".into() }, Report::Message { text: "key ***".into() }]);
        assert_eq!((&*answer, &*aside), ("key 123\nkey ***\n", "⚙ hooks changed the answer:\n"));
    }

    #[test]
    fn lines_are_prompts_commands_and_answers() {
        let (mut plain, mut notes) = (Plain::default(), Notes::default());
        assert_eq!(plain.line("one\\", &mut notes), Some(vec![]));
        assert_eq!(plain.line("two", &mut notes), Some(vec![]));
        assert_eq!(plain.line("/mode balanced", &mut notes), Some(vec![]));
        assert_eq!(plain.line("/nothing", &mut notes).map(|said| said.len()), Some(1));
        plain.told(Told::Asked(1, Ask::GoOn(3)));
        assert_eq!(plain.line("what?", &mut notes), Some(vec![]));
        assert_eq!(plain.line("n", &mut notes), Some(vec![]));
        assert_eq!(plain.line("/quit", &mut notes), None);
        assert_eq!(notes.0, [Command::Prompt("one\ntwo".into()), Command::Mode("balanced".into())]);
        assert_eq!(notes.1, [Reply::GoOn(false)]);
    }
}
