//! The binary in a home of its own: nothing of this machine's configuration or environment reaches it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longer than any of these tests may wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// A working directory, and a home in it.
pub(crate) struct Home {
    folder: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// One in memory, where there is a place for that: thousands of files take their time on a disk.
    pub(crate) fn in_memory() -> Self {
        Self::in_folder(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn in_folder(folder: TempDir) -> Self {
        std::fs::create_dir(folder.path().join("home")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `gatehook` in this folder, with nothing in its environment that is not said here.
    pub(crate) fn gatehook(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_gatehook"))
    }

    /// Any program there, with `gatehook` on its path.
    pub(crate) fn command(&self, program: &str) -> Command {
        let bin = Path::new(env!("CARGO_BIN_EXE_gatehook")).parent().unwrap();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.path().join("home"))
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.gatehook().args(args))
    }

    /// The same with text on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let path = self.file("stdin", input);
        ran(self.gatehook().args(args).stdin(std::fs::File::open(path).unwrap()))
    }
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

impl Ran {
    /// All of it, for snapshots.
    pub(crate) fn shown(&self) -> String {
        let mut shown = format!("exit {}\n", self.code);
        for (name, text) in [("stdout", &self.out), ("stderr", &self.err)] {
            if !text.is_empty() {
                shown.push_str(&format!("--- {name}\n{text}"));
            }
        }
        shown
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.shown()))
    }
}

/// Asserts a snapshot in which what differs from run to run has a name.
macro_rules! shows {
    ($name:expr, $ran:expr) => {
        insta::with_settings!({
            filters => vec![
                (r"TIME +", "TIME    "),
                (r"(?m)\d+\.\d ms$", "[TIME]"),
                (r"\d+\.\d ms +", "[TIME]  "),
            ],
            omit_expression => true,
            prepend_module_to_snapshot => false,
        }, { insta::assert_snapshot!($name, $ran.shown()) })
    };
}
pub(crate) use shows;

/// A gateway that serves.
pub(crate) struct Serve {
    child: Child,
    pub(crate) address: SocketAddr,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Serve {
    /// `serve` with these arguments, on a free port.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_command(home.gatehook().arg("serve").args(args))
    }

    /// The same for a command that is made otherwise.
    pub(crate) fn start_command(command: &mut Command) -> Self {
        let mut child =
            command.args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut serve = Self { child, address, lines, seen: Vec::new() };
        let line = serve.line("listening on http://");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('"').next());
        serve.address = address.and_then(|address| address.parse().ok()).expect(&line);
        serve
    }

    /// The next line of the log with this text in it.
    pub(crate) fn line(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("no {text:?} ({error}) in the log:\n{}", self.seen.join("\n")),
            }
            if let Some(line) = self.seen.last().filter(|line| line.contains(text)) {
                return line.clone();
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its process.
    pub(crate) fn number(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// The most memory it ever held, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak.and_then(|kib| kib.trim().parse::<u64>().ok()).expect(&status) << 10
    }

    /// Its exit code and whole log, once it has ended.
    pub(crate) fn ended(mut self) -> (i32, String) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.seen.join("\n")),
            }
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (code, self.seen.join("\n"))
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\n"), "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.post_with(path, None, body)
    }

    /// With one more header, as in `Name: value`.
    pub(crate) fn post_with(&self, path: &str, header: Option<&str>, body: &str) -> (u16, String) {
        let header = header.map(|header| format!("{header}\r\n")).unwrap_or_default();
        self.send(&format!("POST {path} HTTP/1.1\r\ncontent-type: application/json\r\n{header}"), body)
    }

    /// A chat with one user message.
    pub(crate) fn chat(&self, prompt: &str) -> (u16, String) {
        let body = serde_json::json!({"model": "m", "messages": [{"role": "user", "content": prompt}]});
        self.post("/v1/chat/completions", &body.to_string())
    }

    fn send(&self, head: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let address = self.address;
        write!(stream, "{head}host: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").expect(&reply);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect(head);
        (status, body.to_owned())
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
