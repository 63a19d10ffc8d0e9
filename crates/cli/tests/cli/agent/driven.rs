//! An agent that a script answers, in a home of its own, with a hook on every event that writes down what it is told: it
//! does what one prompt says, or what a person at a terminal does.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::rc::Rc;

use gatehook_engine::events::Event;
use serde_json::{Value, json};

use crate::chat::terminal::Terminal;
use crate::support::{Home, Ran, ran};

/// Events that a run of the agent raises by itself.
fn heard() -> impl Iterator<Item = &'static str> {
    Event::all().filter(|event| !event.is_lane()).map(Event::name)
}

/// An agent and what its model will say.
pub(crate) struct Driven {
    pub(crate) home: Rc<Home>,
    answers: BTreeMap<&'static str, Value>,
    script: Vec<Value>,
    config: String,
    args: Vec<String>,
    /// Without the hooks that write down what they are told.
    is_silent: bool,
}

/// What it did.
#[derive(Debug)]
pub(crate) struct Drove {
    pub(crate) ran: Ran,
    /// The payloads of the hooks, in order.
    pub(crate) told: Vec<Value>,
    /// What `--json` printed.
    pub(crate) reports: Vec<Value>,
}

/// A call of a tool.
pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// An answer without one.
pub(crate) fn text(text: &str) -> Value {
    json!({"text": text})
}

impl Driven {
    /// One whose model says these, in turn.
    pub(crate) fn new(script: impl IntoIterator<Item = Value>) -> Self {
        Self::in_home(Home::new(), script)
    }

    /// The same in another home.
    pub(crate) fn in_home(home: Home, script: impl IntoIterator<Item = Value>) -> Self {
        let (script, home) = (script.into_iter().collect(), Rc::new(home));
        // What hooks write down is not what they are told of.
        home.file(".gitignore", "/home/\n");
        Self { home, answers: BTreeMap::new(), script, config: String::new(), args: Vec::new(), is_silent: false }
    }

    /// What a hook of an event answers.
    pub(crate) fn answers(mut self, event: &'static str, answer: Value) -> Self {
        self.answers.insert(event, answer);
        self
    }

    /// What else stands in the user's configuration.
    pub(crate) fn config(mut self, text: &str) -> Self {
        self.config.push_str(text);
        self.config.push('\n');
        self
    }

    /// Without a hook of the native contract.
    pub(crate) fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }

    /// More of the command line.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }

    /// A file of the workspace.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        self.home.file(name, text);
        self
    }

    /// Lets it do what the prompt says.
    pub(crate) fn run(self, prompt: &str) -> Drove {
        self.run_again(&["run", prompt, "--json"])
    }

    /// Another one in the same home, whose model says these.
    pub(crate) fn saying(&self, script: impl IntoIterator<Item = Value>) -> Self {
        let (home, answers, args) = (self.home.clone(), self.answers.clone(), self.args.clone());
        let script = script.into_iter().collect();
        Self { home, answers, script, config: self.config.clone(), args, is_silent: self.is_silent }
    }

    /// What hooks have been told so far.
    pub(crate) fn told(&self) -> Vec<Value> {
        lines(&fs::read_to_string(self.home.path().join("home/told.jsonl")).unwrap_or_default())
    }

    /// Runs a command with all of it.
    pub(crate) fn run_again(&self, command: &[&str]) -> Drove {
        let ran = ran(&mut self.command(command));
        let (told, reports) = (self.told(), lines(&ran.out));
        Drove { ran, told, reports }
    }

    /// The terminal in which a person meets it, once it waits for them.
    pub(crate) fn chat(&self, args: &[&str]) -> Terminal {
        let mut terminal = Terminal::start(self.command(&["chat"]).args(args).env("TERM", "xterm-256color"), (100, 40));
        terminal.sees("Ask for something");
        terminal
    }

    /// What it did by the time the person has left.
    pub(crate) fn left(&self, mut terminal: Terminal) -> Drove {
        terminal.sees("Ask for something");
        terminal.types("\u{4}");
        let ran = Ran { code: terminal.ends(), out: terminal.seen(), err: String::new() };
        Drove { ran, told: self.told(), reports: Vec::new() }
    }

    /// A command with all of it.
    pub(crate) fn command(&self, command: &[&str]) -> Command {
        let script: String = self.script.iter().map(|answer| format!("{answer}\n")).collect();
        let script = self.home.file("home/script.jsonl", &script);
        let mut gatehook = self.live_command(command);
        gatehook.arg("--replay").arg(script);
        gatehook
    }

    /// The same, but for the script: the model is that of the configuration.
    pub(crate) fn live_command(&self, command: &[&str]) -> Command {
        let log = self.home.path().join("home/told.jsonl");
        let mut hooks = String::from(if self.is_silent { "hooks: {}\n" } else { "hooks:\n" });
        for event in heard().filter(|_| !self.is_silent) {
            let answer = self.answers.get(event).map(Value::to_string).unwrap_or_default();
            let answer = self.home.file(&format!("home/answers/{event}"), &answer);
            hooks.push_str(&format!(
                "  {event}:\n    - hooks:\n        - {{type: command, name: all, command: \"read -r line; printf '%s\\\\n' \
                 \\\"$line\\\" >> '{}'; cat '{}'\"}}\n",
                log.display(),
                answer.display(),
            ));
        }
        self.home.file("home/.config/gatehook/gatehook.yaml", &format!("{}{hooks}", self.config));
        let mut gatehook = self.home.gatehook();
        gatehook.args(command).args(&self.args);
        gatehook
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

impl Drove {
    /// The events, in order.
    pub(crate) fn events(&self) -> Vec<&str> {
        self.told.iter().filter_map(|told| told["hook_event_name"].as_str()).collect()
    }

    /// The payloads of one event.
    pub(crate) fn of(&self, event: &str) -> Vec<&Value> {
        self.told.iter().filter(|told| told["hook_event_name"] == event).collect()
    }

    /// The payload of an event that came once.
    pub(crate) fn one(&self, event: &str) -> &Value {
        match self.of(event)[..] {
            [one] => one,
            ref all => panic!("{event} came {} times: {:?}\n{}", all.len(), self.events(), self.ran.shown()),
        }
    }

    /// What the model was told, in its last question.
    pub(crate) fn asked(&self) -> String {
        let last = self.of("pre_inference").last().map(|told| told["messages"].to_string());
        last.unwrap_or_else(|| panic!("the model was not asked: {}", self.ran.shown()))
    }

    /// What is shown of the model's words.
    pub(crate) fn text(&self) -> &str {
        let done = self.reports.iter().rfind(|report| report["type"] == "done");
        done.and_then(|done| done["text"].as_str()).unwrap_or_else(|| panic!("nothing is done: {}", self.ran.shown()))
    }

    /// Why the last turn ended.
    pub(crate) fn reason(&self) -> &str {
        let done = self.reports.iter().rfind(|report| report["type"] == "done");
        done.and_then(|done| done["reason"].as_str()).unwrap_or_else(|| panic!("nothing is done: {}", self.ran.shown()))
    }

    /// What the person was told.
    pub(crate) fn notices(&self) -> Vec<&str> {
        let notices = self.reports.iter().filter(|report| report["type"] == "notice");
        notices.filter_map(|notice| notice["text"].as_str()).collect()
    }

    /// The results of tool calls.
    pub(crate) fn results(&self) -> Vec<&Value> {
        self.reports.iter().filter(|report| report["type"] == "tool_result").collect()
    }
}
