//! One network thread: its listener, its runtime, its connections and its pool.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::connection::{self, Control};
use crate::pool::Pool;
use crate::state::{Shared, State};

/// How often deadlines of connections are looked at. They are late by this much at most.
const TICK: Duration = Duration::from_millis(250);
/// After this many ticks idle upstream connections are looked at.
const SWEEP_EVERY: u32 = 40;

/// What a gateway wants its threads to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Serve.
    Serving,
    /// Accept nothing more, end what has begun, at most until the instant.
    Draining(Instant),
}

/// What lives on one thread.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pool: Pool,
    connections: RefCell<Vec<Weak<Control>>>,
    open: Cell<usize>,
    closed: Notify,
}

impl Worker {
    /// The configuration in force.
    pub(crate) fn state(&self) -> Arc<State> {
        self.shared.state.load_full()
    }
}

/// Runs a thread until its gateway drains.
pub(crate) async fn run(listener: TcpListener, shared: Arc<Shared>, workers: usize, mut phase: watch::Receiver<Phase>) {
    let worker = Rc::new(Worker {
        shared,
        pool: Pool::default(),
        connections: RefCell::default(),
        open: Cell::new(0),
        closed: Notify::new(),
    });
    let housekeeper = tokio::task::spawn_local(keep_house(worker.clone()));
    let until = tokio::select! {
        until = draining(&mut phase) => until,
        never = accept(&listener, &worker, workers) => match never {},
    };
    drop(listener);
    worker.each(Control::finish);
    let emptied = async {
        while worker.open.get() > 0 {
            worker.closed.notified().await;
        }
    };
    if timeout(until.saturating_duration_since(Instant::now()), emptied).await.is_err() {
        tracing::warn!(connections = worker.open.get(), "connections are cut at the end of the grace period");
    }
    housekeeper.abort();
}

/// When the gateway drains: until when. A gateway that is gone drains at once.
async fn draining(phase: &mut watch::Receiver<Phase>) -> Instant {
    match phase.wait_for(|phase| *phase != Phase::Serving).await.map(|phase| *phase) {
        Ok(Phase::Draining(until)) => until,
        _ => Instant::now(),
    }
}

async fn accept(listener: &TcpListener, worker: &Rc<Worker>, workers: usize) -> std::convert::Infallible {
    loop {
        let limit = worker.state().limits.connections.div_ceil(workers);
        if worker.open.get() >= limit {
            worker.closed.notified().await;
            continue;
        }
        match listener.accept().await {
            Ok((stream, peer)) => worker.serve(stream, peer),
            Err(error) => {
                // Out of descriptors, most likely: waiting is all that helps.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

impl Worker {
    fn serve(self: &Rc<Self>, stream: tokio::net::TcpStream, peer: SocketAddr) {
        let control = Rc::new(Control::default());
        self.connections.borrow_mut().push(Rc::downgrade(&control));
        let open = Open::new(self.clone());
        tokio::task::spawn_local(async move {
            connection::serve(&open.worker, stream, peer, control).await;
        });
    }

    fn each(&self, act: impl Fn(&Control)) {
        self.connections.borrow_mut().retain(|control| control.upgrade().inspect(|control| act(control)).is_some());
    }
}

/// An open connection, as it is counted.
struct Open {
    worker: Rc<Worker>,
}

impl Open {
    fn new(worker: Rc<Worker>) -> Self {
        worker.open.set(worker.open.get() + 1);
        worker.shared.metrics.connections.inc();
        Self { worker }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.worker.open.set(self.worker.open.get().saturating_sub(1));
        self.worker.shared.metrics.connections.dec();
        self.worker.closed.notify_one();
    }
}

async fn keep_house(worker: Rc<Worker>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for count in 1_u32.. {
        ticks.tick().await;
        let limits = worker.state().limits.clone();
        worker.each(|control| control.tick(&limits, TICK));
        if count % SWEEP_EVERY == 0 {
            worker.pool.sweep();
        }
    }
}
