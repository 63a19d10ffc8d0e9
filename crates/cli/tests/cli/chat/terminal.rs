//! A terminal in which a program runs: what it writes is parsed as a terminal would, and keys are typed into it.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use vt100::Parser;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    written: Receiver<Vec<u8>>,
    parser: Parser,
    /// All that was written.
    pub(crate) bytes: Vec<u8>,
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

impl Terminal {
    /// Starts a command in a terminal of this many columns and rows, as the first process of a session of its own.
    pub(crate) fn start(command: &Command, (columns, rows): (u16, u16)) -> Self {
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&pty).unwrap();
        unlockpt(&pty).unwrap();
        let name = ptsname(&pty, Vec::new()).unwrap();
        let keyboard = File::from(pty);
        resize(&keyboard, columns, rows);
        let end = || Stdio::from(open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let mut setsid = Command::new("setsid");
        setsid.arg("--ctty").arg(command.get_program()).args(command.get_args());
        setsid.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        setsid.current_dir(command.get_current_dir().unwrap());
        let child = setsid.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(setsid);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The terminal's last end is closed when the program has ended: an error here.
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, written, parser: Parser::new(cells(rows), cells(columns), 0), bytes: Vec::new() }
    }

    /// What is seen, a line for each row.
    pub(crate) fn seen(&self) -> String {
        let (_, columns) = self.parser.screen().size();
        let rows = self.parser.screen().rows(0, columns.get());
        rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Waits until a text is seen.
    pub(crate) fn sees(&mut self, text: &str) {
        self.until(&format!("no {text:?}"), |terminal| terminal.seen().contains(text));
    }

    /// Waits until a text is not seen any more.
    pub(crate) fn loses(&mut self, text: &str) {
        self.until(&format!("still {text:?}"), |terminal| !terminal.seen().contains(text));
    }

    pub(crate) fn until(&mut self, else_say: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            match self.written.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(error) => panic!("{else_say} ({error}):\n{}\n", self.seen()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
        self.bytes.extend_from_slice(bytes);
    }

    /// Types.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resizes(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(cells(rows), cells(columns));
        resize(&self.keyboard, columns, rows);
    }

    pub(crate) fn signals(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its exit code, once it has ended.
    pub(crate) fn ends(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.written.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().code().unwrap_or(-1),
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.seen()),
            }
        }
    }

    /// Asserts that the terminal is as it was before.
    pub(crate) fn is_given_back(&self) {
        let screen = self.parser.screen();
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        let is_line_by_line = modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        let given_back = !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste();
        assert!(is_line_by_line, "{modes:?}:\n{}", self.seen());
        assert!(given_back, "{}", self.seen());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where a test fails it may still run.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &File, columns: u16, rows: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}
