//! Hooks of `type: model`, judged by a server on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use crate::pages::{blocks, root};
use crate::support::{Home, Ran};

/// An Ollama that denies what names `rm`, and allows all else.
pub(crate) struct Ollama {
    pub(crate) url: String,
    pub(crate) asked: Receiver<Value>,
}

impl Ollama {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(stream, &sender);
            }
        });
        Self { url, asked }
    }
}

fn answer(stream: TcpStream, asked: &Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).ok().filter(|read| *read > 0)?;
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let prompt = body["messages"][1]["content"].as_str()?.to_owned();
    asked.send(body).ok()?;
    let decision = if prompt.contains("rm -rf") { "deny" } else { "allow" };
    let verdict = json!({"decision": decision, "reason": "as the policy says"}).to_string();
    let answer = json!({"message": {"role": "assistant", "content": verdict}, "done": true,
                        "prompt_eval_count": 200, "eval_count": 20})
    .to_string();
    let mut stream = reader.into_inner();
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{answer}", answer.len()).ok()
}

/// The judge of the page on configuration.
fn example() -> String {
    let blocks = blocks(&root().join("docs/configuration.md"));
    let judge = blocks.into_iter().find(|block| block.language == "yaml" && block.text.contains("type: model"));
    judge.expect("the page shows a judge").text
}

fn test(policy: &str, models: &str, command: &str) -> Ran {
    let home = Home::new();
    home.file("gatehook.yaml", &format!("{policy}\nmodels: {models}\n"));
    let set = format!("cmd={command}");
    home.run(&[
        "hooks",
        "test",
        "pre_tool_use",
        "--json",
        "--config",
        "gatehook.yaml",
        "--tool",
        "shell",
        "--set",
        &set,
    ])
}

#[test]
fn the_pages_judge_decides_on_a_tool_call() {
    let ollama = Ollama::new();
    let models = format!("{{ 'ollama/*': {{ base_url: '{}', input_price: 10, output_price: 100 }} }}", ollama.url);
    for (command, code, decision) in [("rm -rf /", 1, "deny"), ("ls", 0, "allow")] {
        let ran = test(&example(), &models, command);
        assert_eq!(ran.code, code, "{}", ran.shown());
        let verdict = ran.json();
        assert_eq!(
            (&verdict["decision"], &verdict["decision_reason"]),
            (&json!(decision), &json!("as the policy says"))
        );
        let outcome = &verdict["outcomes"][0];
        assert_eq!(outcome["usage"], json!({"input_tokens": 200, "output_tokens": 20}));
        assert_eq!(outcome["cost"], 0.004);
        let asked = ollama.asked.recv().unwrap();
        assert_eq!((&asked["model"], &asked["stream"]), (&json!("llama3"), &json!(false)));
        let prompt = asked["messages"][1]["content"].as_str().unwrap();
        assert!(prompt.contains(&format!("The tool shell is called with: {{\"cmd\":\"{command}\"}}")), "{prompt}");
    }
}

#[test]
fn a_judge_that_nobody_runs_refuses() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = test(&example(), &format!("{{ 'ollama/*': {{ base_url: 'http://{nobody}' }} }}"), "ls");
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert_eq!(ran.json()["outcomes"][0]["kind"], json!({"failed": "unreachable"}));
}

#[test]
fn a_judge_that_cannot_be_asked_is_found_by_the_check() {
    let home = Home::new();
    let hook = "type: model, prompt: x, schema: pre_tool_use_decision";
    for (model, part) in [
        ("llama3", "names no provider, as in `ollama/llama3`"),
        ("olama/llama3", "did you mean `ollama`?"),
        ("openai/gpt-5-mini", "set OPENAI_API_KEY"),
    ] {
        home.file("gatehook.yaml", &format!("hooks: {{ tool_guard: {{ {hook}, model: {model} }} }}\n"));
        let ran = home.run(&["hooks", "check", "gatehook.yaml"]);
        assert!(
            ran.code != 0 && ran.err.split_whitespace().collect::<Vec<_>>().join(" ").contains(part),
            "{}",
            ran.shown()
        );
    }
}
