//! Starting a gateway, changing its configuration, and stopping it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::Config;
use crate::keys::KeyError;
use crate::state::{Shared, State};
use crate::upstream::UpstreamError;
use crate::worker::{self, Phase};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Why a gateway does not start, or a configuration is not put in force.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// Everybody could call it.
    #[error("{address} can be reached from outside and no key is asked for: set `keys`, or `listen.open: true`")]
    Open {
        /// Where.
        address: SocketAddr,
    },
    /// No upstream.
    #[error("no upstream is configured")]
    NoUpstream,
    /// An upstream.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// A key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A thread.
    #[error("cannot start a network thread: {0}")]
    Thread(#[source] io::Error),
    /// The address has changed, which takes a restart.
    #[error("listen.address cannot change while the gateway runs: restart it")]
    AddressChanged,
}

/// A gateway. It is started, and then reached through its [`Handle`].
#[derive(Debug)]
pub struct Gateway;

/// A running gateway. Dropping it stops the gateway at once.
pub struct Handle {
    /// Where it listens.
    pub addr: SocketAddr,
    configured: SocketAddr,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Checks the configuration as [`Gateway::start`] does, files that it names included, without listening.
    pub fn check(config: &Config) -> Result<(), StartError> {
        State::new(config).map(drop)
    }

    /// Checks the configuration, listens, and serves on threads of its own.
    pub fn start(config: Config) -> Result<Handle, StartError> {
        let shared = Arc::new(Shared::new(State::new(&config)?));
        let workers = match config.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let (phase, phases) = watch::channel(Phase::Serving);
        let configured = config.listen.address;
        refuse_taken(configured)?;
        let mut handle = Handle { addr: configured, configured, shared, phase, threads: Vec::new() };
        for number in 0..workers {
            let socket = listen(handle.addr).map_err(|error| StartError::Listen { address: handle.addr, error })?;
            handle.addr = socket.local_addr().map_err(|error| StartError::Listen { address: handle.addr, error })?;
            let (shared, phases) = (handle.shared.clone(), phases.clone());
            let thread = std::thread::Builder::new()
                .name(format!("gateway-{number}"))
                .spawn(move || serve(socket, shared, workers, phases))
                .map_err(StartError::Thread)?;
            handle.threads.push(thread);
        }
        Ok(handle)
    }
}

/// Threads share their address, and so would a second gateway by mistake: it must find the address free.
fn refuse_taken(address: SocketAddr) -> Result<(), StartError> {
    if address.port() == 0 {
        return Ok(());
    }
    let bound = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).and_then(|socket| {
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())
    });
    bound.map_err(|error| StartError::Listen { address, error })
}

/// A listening socket that shares its address with those of the other threads.
fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The life of a network thread.
fn serve(socket: std::net::TcpListener, shared: Arc<Shared>, workers: usize, phases: watch::Receiver<Phase>) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let served = runtime.and_then(|runtime| {
        runtime.block_on(async {
            worker::run(TcpListener::from_std(socket)?, shared, workers, phases).await;
            Ok(())
        })
    });
    if let Err(error) = served {
        tracing::error!(%error, "a network thread has ended");
    }
}

impl Handle {
    /// Puts another configuration in force, for requests that begin from now on. One that is wrong is refused, and the
    /// old one stays. Reads the files that the configuration names.
    pub fn reload(&self, config: &Config) -> Result<(), StartError> {
        let state = match State::new(config) {
            Ok(_) if config.listen.address != self.configured => Err(StartError::AddressChanged),
            state => state,
        };
        match state {
            Ok(state) => {
                self.shared.state.store(Arc::new(state));
                Ok(())
            }
            Err(error) => {
                self.shared.metrics.reloads_refused.inc();
                Err(error)
            }
        }
    }

    /// Counts a configuration that could not even be read.
    pub fn refuse_reload(&self) {
        self.shared.metrics.reloads_refused.inc();
    }

    /// The metrics as `/metrics` shows them.
    pub fn metrics(&self) -> String {
        self.shared.metrics.text()
    }

    /// Accepts nothing more, lets requests finish within `grace`, cuts what is left, and waits for the threads to end.
    pub async fn shutdown(mut self, grace: Duration) {
        self.phase.send_replace(Phase::Draining(Instant::now() + grace));
        let threads = std::mem::take(&mut self.threads);
        let ended = tokio::task::spawn_blocking(move || {
            for thread in threads {
                let _ = thread.join();
            }
        });
        let _ = ended.await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Draining(Instant::now()));
    }
}
