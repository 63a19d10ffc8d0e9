//! A defect of the program while the terminal is its own. None is known, so the system is made to be at fault: a clock that
//! does not answer is a panic of the standard library, in the thread that asks it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::terminal::Terminal;
use super::{SIZE, chat, home};
use crate::support::Home;

/// Stands before the system's clock: a thread of this name gets no answer once a file is there.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    char name[16] = "";
    const char *broken = getenv("BROKEN_CLOCK"), *thread = getenv("BROKEN_THREAD");
    prctl(PR_GET_NAME, name);
    if (broken && thread && strcmp(name, thread) == 0 && access(broken, F_OK) == 0) {
        errno = EINVAL;
        return -1;
    }
    return syscall(SYS_clock_gettime, clock, now);
}
"#;

fn clock(home: &Home) -> PathBuf {
    let (source, library) = (home.file("home/clock.c", CLOCK), home.path().join("home/clock.so"));
    // What links Rust programs compiles C as well.
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap();
    assert!(made.success());
    library
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_says_anything() {
    for thread in ["gatehook", "session"] {
        let home = home(&[json!({"text": "unsaid"})]);
        let broken = home.path().join("home/broken");
        let mut command = chat(&home, &[]);
        command.env("LD_PRELOAD", clock(&home)).env("BROKEN_CLOCK", &broken).env("BROKEN_THREAD", thread);
        let mut terminal = Terminal::start(&command, SIZE);
        terminal.sees("Ask for something");
        assert!(terminal.screen().alternate_screen(), "{thread}");
        std::fs::write(broken, "").unwrap();
        terminal.types("hello\r");
        assert_eq!(terminal.ends(), 70, "{thread}: {}", terminal.seen());
        terminal.is_given_back();
        assert!(terminal.seen().contains("panicked at"), "{thread}: {}", terminal.seen());
    }
}
