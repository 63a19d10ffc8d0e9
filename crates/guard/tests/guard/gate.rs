//! Streams through the gate.

mod buffered;
mod calls;
mod faults;
mod glued;
mod interrupted;
mod personal;
mod restored;
mod scanned;
mod windowed;

pub(crate) use scanned::Secrets;

use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use gatehook_guard::{Gate, GateSettings, Refusal, UpstreamEnd};
use gatehook_inference::{Ending, Route};

use crate::streams::{Gathered, Say, frames, gather};
use crate::world::{Exchange, World, request};

pub(crate) const SETTINGS: GateSettings = GateSettings { ending: Ending::Refusal, limit: 1024 * 1024, aside: None };

/// What came out of a gate, read by read.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) bytes: Vec<u8>,
    /// What had come out after each read.
    pub(crate) after: Vec<usize>,
    pub(crate) refusal: Option<Refusal>,
}

impl Came {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

pub(crate) async fn gate(exchange: &Exchange, route: Route) -> Option<Gate> {
    gate_with(exchange, route, SETTINGS).await
}

pub(crate) async fn gate_with(exchange: &Exchange, route: Route, settings: GateSettings) -> Option<Gate> {
    let mut body = request(route);
    body["stream"] = true.into();
    let admitted = exchange.ask(route, &body).await.unwrap();
    Gate::new(exchange.guard.clone().into(), exchange.owned(route), admitted, settings)
}

/// Drives what is due, as far as it goes without waiting, and takes what comes out.
pub(crate) async fn drain(gate: &mut Gate, came: &mut Came) {
    poll_fn(|cx| {
        while gate.poll(cx).is_ready() {}
        Poll::Ready(())
    })
    .await;
    while let Some(bytes) = gate.take() {
        came.bytes.extend_from_slice(&bytes);
    }
}

/// Sends these reads through a gate, to its end.
pub(crate) async fn send(gate: &mut Gate, reads: impl IntoIterator<Item = Bytes>) -> Came {
    let mut came = Came::default();
    for read in reads {
        gate.push(read);
        drain(gate, &mut came).await;
        came.after.push(came.bytes.len());
    }
    gate.end(UpstreamEnd::Over);
    finish(gate, &mut came).await;
    came
}

/// Waits for all that is still judged.
pub(crate) async fn finish(gate: &mut Gate, came: &mut Came) {
    loop {
        drain(gate, came).await;
        if gate.is_done() {
            break;
        }
        gate.judged().await;
    }
    came.refusal = gate.outcome().cloned();
}

/// Sends what a model says on a route through the gate of these hooks, a read for each frame.
pub(crate) async fn stream(world: World, route: Route, says: &[Say]) -> (Exchange, Came, Gathered) {
    let exchange = Exchange::from(world);
    let mut gate = gate(&exchange, route).await.expect("a gate");
    let came = send(&mut gate, frames(route, says).into_iter().map(Bytes::from)).await;
    let gathered = gather(route, &came.bytes);
    (exchange, came, gathered)
}
