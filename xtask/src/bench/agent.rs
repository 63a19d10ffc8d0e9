//! `cargo xtask bench agent`: how soon `gatehook run` asks its model, and what a long session costs by its length.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::report::Bound::AtMost;
use super::report::{Report, Row};
use super::{Options, median};
use crate::Outcome;
use crate::program::{cargo, target};

/// Turns of the long session.
const TURNS: usize = 500;

/// Turns around the one that is meant, to even out chance.
const AROUND: usize = 10;

/// Starts in one round.
const STARTS: usize = 10;

/// An answer of a model's server, and the end of it.
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":\
{\"role\":\"assistant\",\"content\":\"Hello.\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":\
{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

pub(crate) fn run(options: &Options) -> Outcome<Report> {
    cargo(&["build", "--release", "--locked", "--package", "gatehook"]).run()?;
    let gatehook = target().join("release/gatehook");
    let place = target().join("bench/agent");
    let (mut starts, mut early, mut late, mut memory) = (vec![], vec![], vec![], vec![]);
    for round in 1..=options.rounds {
        println!("round {round} of {}", options.rounds);
        for _ in 0..STARTS {
            starts.push(start(&gatehook, &fresh(&place)?)?);
        }
        let session = session(&gatehook, &fresh(&place)?)?;
        early.push(mean(&session.turns, AROUND));
        late.push(mean(&session.turns, TURNS - AROUND));
        memory.push(session.memory);
    }
    let rows = vec![
        Row {
            what: "from the start of `gatehook run` to its question at the model's server".to_owned(),
            value: median(starts),
            unit: "ms",
            against: None,
            rounds: Vec::new(),
            bound: AtMost(30.0),
        },
        Row {
            what: format!("a turn with a tool call, around turn {TURNS} of a session"),
            value: median(late),
            unit: "ms",
            against: Some((format!("turn {AROUND}"), median(early))),
            rounds: Vec::new(),
            bound: AtMost(1.5),
        },
        Row::memory(&format!("the most memory of a session of {TURNS} turns"), median(memory), AtMost(100.0)),
    ];
    Ok(Report::new("agent", &[], rows))
}

/// An empty home with a workspace in it.
fn fresh(place: &Path) -> Outcome<PathBuf> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::create_dir_all(place.join("work"))?;
    fs::write(place.join("work/notes.txt"), "A line of a file that is read.\n".repeat(40))?;
    Ok(place.to_owned())
}

fn gatehook(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home.join("work"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// Milliseconds from the start of the process until its model's server has the question.
fn start(program: &Path, home: &Path) -> Outcome<f64> {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let config = home.join(".config/gatehook/gatehook.yaml");
    fs::create_dir_all(home.join(".config/gatehook"))?;
    let url = format!("http://{}", server.local_addr()?);
    fs::write(config, json!({"models": {"openai/m": {"base_url": url}}, "hooks": {}}).to_string())?;
    let begun = Instant::now();
    let child = gatehook(program, home).args(["run", "Say hello.", "--model", "openai/m"]).spawn()?;
    let child = Ended(child);
    let (mut connection, _) = server.accept()?;
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let (mut seen, mut piece) = (Vec::new(), [0; 65536]);
    while !seen.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = connection.read(&mut piece)?;
        seen.extend_from_slice(piece.get(..read).filter(|piece| !piece.is_empty()).ok_or("the question broke off")?);
    }
    let taken = begun.elapsed();
    connection.write_all(ANSWER.as_bytes())?;
    drop(connection);
    child.well()?;
    Ok(taken.as_secs_f64() * 1e3)
}

/// What a long session took.
struct Session {
    /// Milliseconds of each turn.
    turns: Vec<f64>,
    /// The most that was resident, in MiB.
    memory: f64,
}

fn session(program: &Path, home: &Path) -> Outcome<Session> {
    let reads = (1..TURNS).map(|turn| {
        let arguments = json!({"path": "notes.txt", "offset": 1 + turn % 30, "limit": 10});
        json!({"tool_calls": [{"name": "read", "arguments": arguments}]}).to_string() + "\n"
    });
    let script: String = reads.chain([json!({"text": "Done."}).to_string()]).collect();
    fs::write(home.join("script.jsonl"), script)?;
    let mut command = gatehook(program, home);
    command.args(["run", "Read all of it.", "--json", "--replay"]).arg(home.join("script.jsonl"));
    let mut child = Ended(command.spawn()?);
    let (pid, output) = (child.0.id(), child.0.stdout.take().ok_or("it has no output")?);
    let (mut turns, mut memory, mut last) = (vec![], f64::NAN, None);
    for line in BufReader::new(output).lines() {
        let report: Value = serde_json::from_str(&line?)?;
        if report.get("type").and_then(Value::as_str) == Some("turn_end") {
            let now = Instant::now();
            turns.extend(last.map(|last: Instant| (now - last).as_secs_f64() * 1e3));
            last = Some(now);
            if turns.len() + 1 == TURNS {
                memory = most_resident(pid)?;
            }
        }
    }
    child.well()?;
    if turns.len() + 1 != TURNS {
        return Err(format!("the session had {} turns instead of {TURNS}", turns.len() + 1).into());
    }
    Ok(Session { turns, memory })
}

fn most_resident(pid: u32) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

/// The mean of the turns around one.
fn mean(turns: &[f64], at: usize) -> f64 {
    let around = turns.get(at.saturating_sub(AROUND)..(at + AROUND).min(turns.len())).unwrap_or_default();
    around.iter().sum::<f64>() / around.len() as f64
}

/// A process that ends with this.
struct Ended(Child);

impl Ended {
    fn well(mut self) -> Outcome {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("gatehook ended with {status}").into()) }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // It has ended by itself unless something failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
