//! `gatehook serve`: the gateway, until it is told to stop.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use gatehook_engine::handlers::command::{adopt_orphans, end_leftovers};
use gatehook_engine::{Executor, Held, HookInfo};
use gatehook_events::Event;
use gatehook_gateway::{Gateway, Handle, Watch};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::logging;
use crate::policy;
use crate::print::Printer;
use crate::serving::{Serving, Sources};
use crate::table::Table;

/// How long requests may take to finish once the gateway is told to stop.
const GRACE: Duration = Duration::from_secs(30);

/// How long the end of workers, and of what hooks have left running, is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the files of the configuration are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How many files and sockets the gateway lets itself have open, where the system lets it: each exchange takes two. Not
/// without end, because hooks inherit it, and some programs close all that could be open when they start.
const OPEN_FILES: u64 = 65_536;

/// Serves until SIGTERM or Ctrl-C.
pub(crate) fn run(args: &ServeArgs, verbose: u8, printer: &mut Printer) -> Result<Exit, Failure> {
    let sources = Sources::new(args, policy::environment())?;
    let watch = Watch::new(sources.watched());
    let serving = sources.read()?;
    if args.check {
        Gateway::check(&serving.config)?;
        printer.text(&summary(&serving, &sources))?;
        notes(&serving).iter().for_each(|note| printer.note(note));
        return Ok(Exit::Done);
    }
    logging::start(verbose, args.json)?;
    // What a command hook leaves behind outside of its group becomes a child of this process, and is ended.
    if let Err(error) = adopt_orphans() {
        tracing::warn!(%error, "processes that leave their hook's group cannot be adopted here");
    }
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        // Before it listens, so that whoever sees it listen can stop it.
        let signals = Signals::new()?;
        let handle = Gateway::start(serving.config.clone())?;
        announce(&handle, &serving);
        let Serving { executor, config, .. } = serving;
        // It would keep this configuration's workers when another one is in force.
        drop(config);
        let running = Running { handle, executor, sources: &sources, watch, old: JoinSet::new() };
        running.until_stopped(signals).await;
        Ok(Exit::Done)
    });
    drop(runtime);
    sources.drain(PATIENCE);
    end_leftovers(PATIENCE);
    exit
}

/// Takes of the limit on open files what it is allowed to: the usual soft limit of 1,024 is for programs that use
/// `select`.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES));
    if limit.current.is_some_and(|current| current < most)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum })
    {
        tracing::warn!(%error, "the limit on open files cannot be raised");
    }
}

/// What the configuration means, for `--check`.
fn summary(serving: &Serving, sources: &Sources<'_>) -> Table {
    let mut table = Table::default();
    let mut row = |what: &str, name: String, more: String| table.row([what.to_owned(), name, more]);
    for place in sources.places() {
        row("file", place.path.display().to_string(), String::new());
    }
    row("listen", serving.config.listen.address.to_string(), String::new());
    for upstream in &serving.config.upstreams {
        row("upstream", upstream.name.clone(), shown_url(&upstream.url));
    }
    for hook in serving.executor.hooks() {
        row("hook", hook.event.public_name().to_owned(), hook.definition.display_name().to_owned());
    }
    table
}

/// What a configuration does that its author may not expect.
fn notes(serving: &Serving) -> Vec<String> {
    let mut notes: Vec<String> = serving.notes.iter().chain(&serving.unrecorded).cloned().collect();
    let windowed = |hook: &HookInfo<'_>| [hook.policy.text, hook.policy.thinking].contains(&Held::Window);
    for hook in serving.executor.hooks().filter(|hook| hook.event == Event::PostInference && windowed(hook)) {
        let name = hook.definition.display_name();
        notes.push(format!(
            "{name} judges streams by the window: that bounds what leaks before a denial, but excludes no leak"
        ));
    }
    let mut never: Vec<Event> = serving.executor.hooks().map(|hook| hook.event).collect();
    never.dedup();
    for event in never.into_iter().filter(|event| !gatehook_guard::EVENTS.contains(event)) {
        notes.push(format!("hooks on {} never run here: a gateway sees inference alone", event.public_name()));
    }
    notes
}

fn announce(handle: &Handle, serving: &Serving) {
    tracing::info!("listening on http://{}", handle.addr);
    for upstream in &serving.config.upstreams {
        tracing::info!(name = upstream.name, url = shown_url(&upstream.url), "upstream");
    }
    let hooks = serving.executor.hooks().count();
    tracing::info!(hooks, "{}", if hooks == 0 { "no hook is configured: everything passes" } else { "hooks in force" });
    notes(serving).iter().for_each(|note| tracing::warn!("{note}"));
}

/// What a person or a service manager says to it.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Told to stop.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A gateway at work, and what its configuration is read from again.
struct Running<'a> {
    handle: Handle,
    executor: Executor,
    sources: &'a Sources<'a>,
    watch: Watch,
    /// Replaced executors, whose observers still have events to see.
    old: JoinSet<()>,
}

impl Running<'_> {
    async fn until_stopped(mut self, mut signals: Signals) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                _ = signals.terminate.recv() => break,
                _ = signals.interrupt.recv() => break,
                _ = signals.hangup.recv() => {
                    self.watch = Watch::new(self.sources.watched());
                    self.reload();
                }
                _ = look.tick() => if self.watch.look(self.sources.watched()) { self.reload() },
                Some(_) = self.old.join_next() => {}
            }
        }
        tracing::info!("stopping: requests have {} s to finish", GRACE.as_secs());
        let Self { handle, executor, mut old, .. } = self;
        let stopped = async {
            handle.shutdown(GRACE).await;
            executor.drain(GRACE).await;
            while old.join_next().await.is_some() {}
        };
        tokio::select! {
            () = stopped => tracing::info!("stopped"),
            () = signals.stop() => tracing::warn!("stopped at once"),
        }
    }

    /// Puts the configuration as it is now in force; a bad one is logged, and the old one stays.
    fn reload(&mut self) {
        let refused = match self.sources.read() {
            Ok(serving) => match self.handle.reload(&serving.config) {
                Ok(()) => {
                    tracing::info!("the changed configuration is in force");
                    let old = std::mem::replace(&mut self.executor, serving.executor);
                    self.old.spawn(async move { old.drain(GRACE).await });
                    return;
                }
                Err(error) => Failure::from(error),
            },
            Err(error) => {
                self.handle.refuse_reload();
                Failure::from(error)
            }
        };
        tracing::error!("the changed configuration is refused, the old one stays: {refused}");
    }
}

/// An address without its user information.
fn shown_url(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}{}", url.get(..scheme + 3).unwrap_or_default(), url.get(at + 1..).unwrap_or_default())
        }
        _ => url.to_owned(),
    }
}

/// The address that `OLLAMA_HOST` names to a client, as Ollama reads it
/// (<https://github.com/ollama/ollama/blob/main/envconfig/config.go>): scheme and port may be left out, and the
/// address of all interfaces means this machine.
pub(crate) fn ollama_host(text: &str) -> String {
    let text = text.trim().trim_matches(['"', '\'']);
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let default_port = match (scheme, text.contains("://")) {
        ("https", _) => 443,
        ("http", true) => 80,
        _ => 11434,
    };
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    let bracket = authority.rfind(']').unwrap_or(0);
    let (host, port) = match authority.rfind(':').filter(|&colon| colon > bracket || bracket == 0) {
        Some(colon) if authority.matches(':').count() == 1 || bracket > 0 => {
            (authority.get(..colon).unwrap_or_default(), authority.get(colon + 1..).unwrap_or_default())
        }
        _ => (authority, ""),
    };
    let port = port.parse::<u16>().unwrap_or(default_port);
    let host = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ if host.is_empty() => Ipv4Addr::LOCALHOST.to_string(),
        _ => host.to_owned(),
    };
    format!("{scheme}://{host}:{port}/{path}").trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_host_is_read_as_ollama_reads_it() {
        for (written, url) in [
            ("", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":1234", "http://127.0.0.1:1234"),
            ("example.com", "http://example.com:11434"),
            ("example.com:8080", "http://example.com:8080"),
            ("http://example.com", "http://example.com:80"),
            ("https://example.com", "https://example.com:443"),
            ("https://example.com/base/", "https://example.com:443/base"),
            ("[::1]:99", "http://[::1]:99"),
            ("::1", "http://[::1]:11434"),
            ("\"127.0.0.1:5\"", "http://127.0.0.1:5"),
        ] {
            assert_eq!(ollama_host(written), url, "{written:?}");
        }
    }

    #[test]
    fn user_information_is_not_shown() {
        assert_eq!(shown_url("http://me:secret@host:1/x"), "http://host:1/x");
        assert_eq!(shown_url("replay:file"), "replay:file");
    }
}
