//! A server that runs while it is measured, on a core of its own.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Outcome;

const START: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
/// Open files that each may have: two thousand streams and their upstreams' connections.
const FILES: &str = "--nofile=8192:";

/// Ends the process when dropped.
pub(crate) struct Running {
    child: Child,
    log: std::path::PathBuf,
}

impl Running {
    /// Starts a program on one core. What it prints goes to `log`, so that nobody has to read it along.
    pub(crate) fn start(core: usize, command: &[&str], log: &Path) -> Outcome<Self> {
        let output = File::create(log)?;
        let child = Command::new("prlimit")
            .args([FILES, "taskset", "--cpu-list", &core.to_string()])
            .args(command)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("prlimit (util-linux) did not start: {error}"))?;
        Ok(Self { child, log: log.to_path_buf() })
    }

    /// The address that follows `before` in what the program prints.
    pub(crate) fn address(&mut self, before: &str) -> Outcome<SocketAddr> {
        self.wait_for(|log| {
            let text = fs::read_to_string(log).ok()?;
            let (_, rest) = text.split_once(before)?;
            let address = rest.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).next()?;
            // A digit more may be on its way while nothing follows the address.
            (rest.len() > address.len()).then(|| address.parse().ok())?
        })
    }

    /// Waits until somebody listens at `address`.
    pub(crate) fn listens(&mut self, address: SocketAddr) -> Outcome {
        self.wait_for(|_| TcpStream::connect(address).ok().map(drop))
    }

    /// Waits until the program prints `word`.
    pub(crate) fn says(&mut self, word: &str) -> Outcome {
        self.wait_for(|log| fs::read_to_string(log).ok()?.contains(word).then_some(()))
    }

    fn wait_for<T>(&mut self, mut found: impl FnMut(&Path) -> Option<T>) -> Outcome<T> {
        let end = Instant::now() + START;
        loop {
            if let Some(found) = found(&self.log) {
                return Ok(found);
            }
            if self.child.try_wait()?.is_some() || Instant::now() > end {
                return Err(format!("it did not start:\n{}", fs::read_to_string(&self.log)?).into());
            }
            sleep(PAUSE);
        }
    }

    /// What the threads that the process has now have taken of a processor so far.
    pub(crate) fn processor_time(&self) -> Outcome<Duration> {
        let mut nanoseconds = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // The first of three numbers. The one in `stat` comes in steps of 10 ms: too coarse for a frame's share.
            let Ok(numbers) = fs::read_to_string(thread?.path().join("schedstat")) else { continue }; // it has just ended
            let first = numbers.split_whitespace().next().ok_or("a thread without a time")?;
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Resident memory in MiB.
    pub(crate) fn memory(&self) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kib.map(|kib| kib / 1024.0).ok_or_else(|| "the process has no VmRSS".into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address that was free a moment ago, for servers that cannot tell which one they took.
pub(crate) fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
