//! The guards of docs/cookbook.md, each in a folder of its own, run as the page shows them: a comment behind a command
//! is its exit code, or an answer's status, and a text that it prints.

use std::process::Stdio;

use crate::judging::Ollama;
use crate::pages::{Block, Running, blocks_of, free_port, name, root, shell};
use crate::support::{Home, Serve};

/// A guard of the page: all between a heading and the next.
struct Guard {
    title: String,
    blocks: Vec<Block>,
}

fn guards() -> Vec<Guard> {
    let text = std::fs::read_to_string(root().join("docs/cookbook.md")).unwrap();
    let sections = text.split("\n## ").skip(1);
    let guard = |section: &str| Guard { title: section.lines().next().unwrap().to_owned(), blocks: blocks_of(section) };
    sections.map(guard).collect()
}

impl Guard {
    /// Its number on the page.
    fn numbered(number: usize) -> Self {
        let guard = guards().into_iter().nth(number - 1).unwrap();
        assert!(guard.title.starts_with(&format!("{number}. ")), "{}", guard.title);
        guard
    }

    fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.blocks.iter().filter_map(|block| Some((name(block)?, block.text.as_str())))
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        let commands = self.blocks.iter().filter(|block| block.language == "sh" && name(block).is_none());
        commands.flat_map(|block| block.text.lines()).filter(|line| !line.is_empty())
    }

    /// Runs its lines; its judge is at `judge`.
    fn run(&self, judge: &str) {
        let home = Home::new();
        let port = free_port().to_string();
        for (name, text) in self.files() {
            home.file(name, &text.replace("9104", &port).replace("http://127.0.0.1:11434", judge));
        }
        let mut stage = Stage { home, serve: None, programs: Vec::new() };
        self.lines().for_each(|line| stage.run(line));
        let told = self.lines().filter(|line| line.split("  #").nth(1).is_some_and(|comment| comment.contains(':')));
        assert!(told.count() >= 2, "{}: a guard shows what it does and what it leaves", self.title);
    }
}

/// Where a guard's lines run.
struct Stage {
    home: Home,
    serve: Option<Serve>,
    /// They run until this is dropped.
    programs: Vec<Running>,
}

impl Stage {
    /// Runs a line, which must come to what its comment says.
    fn run(&mut self, line: &str) {
        let (command, comment) = line.split_once("  #").unwrap_or((line, ""));
        let (code, text) = comment.split_once(':').unwrap_or((comment, ""));
        let text = text.trim();
        if let Some(args) = command.strip_prefix("gatehook serve ") {
            self.serve = Some(Serve::start(&self.home, &args.split_whitespace().collect::<Vec<_>>()));
        } else if command.starts_with("python3 ") {
            let mut program = self.home.command("/bin/sh");
            program.args(["-c", &format!("exec {command}")]).stderr(Stdio::null());
            self.programs.push(Running::start(&mut program));
        } else if command.starts_with("curl ") {
            let (status, answer) = self.post(command);
            assert_eq!(status.to_string(), code.trim(), "{line}\n{answer}");
            assert!(answer.contains(text), "{line}\n{answer}");
        } else {
            let ran = shell(&self.home, command);
            let expected = code.trim().strip_prefix("exit ").unwrap_or("0");
            assert_eq!(ran.code.to_string(), expected, "{line}\n{}", ran.shown());
            assert!(ran.shown().contains(text), "{line}\n{}", ran.shown());
        }
    }

    /// What a line with `curl` would send.
    fn post(&self, line: &str) -> (u16, String) {
        let words = shell(&self.home, &format!("curl() {{ printf '%s\\n' \"$@\"; }}; {line}")).out;
        let words: Vec<&str> = words.lines().collect();
        let behind = |flag| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1)).copied();
        let path = words.iter().find_map(|word| word.strip_prefix("http://127.0.0.1:11435")).expect(line);
        let serve = self.serve.as_ref().expect("the page starts a gateway first");
        serve.post_with(path, behind("-H"), behind("-d").expect(line))
    }
}

macro_rules! guards {
    ($($test:ident: $number:expr,)*) => { $(
        #[test]
        fn $test() {
            Guard::numbered($number).run("http://127.0.0.1:9");
        }
    )* };
}

guards! {
    rm_rf_is_denied_in_three_languages: 1,
    secrets_go_and_personal_data_comes_back: 2,
    words_are_blocked_in_answers_and_streams: 3,
    tools_that_are_not_on_the_list_are_denied: 4,
    protected_files_are_left_alone: 5,
    rate_and_cost_have_a_cap: 7,
    an_audit_holds_each_call_and_no_text: 8,
    a_person_approves_one_request: 9,
    commits_are_guarded: 10,
}

#[test]
fn a_local_model_judges() {
    let ollama = Ollama::new();
    Guard::numbered(6).run(&ollama.url);
    assert_eq!(ollama.asked.try_iter().count(), 2);
}

#[test]
fn there_are_ten_guards_and_each_is_short() {
    let guards = guards();
    assert_eq!(guards.len(), 10);
    for guard in guards {
        for (name, text) in guard.files() {
            let count = text.lines().filter(|line| !line.is_empty()).count();
            assert!((1..=25).contains(&count), "{}: {name} has {count} lines", guard.title);
        }
    }
}
