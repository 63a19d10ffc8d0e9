//! What runs hooks outside of the engine: processes for one event or for many, Python functions, HTTP requests, models.
//!
//! A type of its own has a folder here, with one [`HandlerFactory`].

pub mod command;
mod confine;
pub mod model;
pub mod python;
pub mod webhook;
pub mod worker;

pub use command::CommandFactory;
pub use python::PythonFactory;
pub use webhook::WebhookFactory;
pub use worker::WorkerFactory;

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_events::FailureKind;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::handler::HandlerFactory;

/// The handler types that every registry begins with.
pub(crate) fn register(types: &mut BTreeMap<String, Arc<dyn HandlerFactory>>) {
    types.insert("command".to_owned(), Arc::new(CommandFactory::default()));
    types.insert("worker".to_owned(), Arc::new(WorkerFactory));
    types.insert("python".to_owned(), Arc::new(PythonFactory));
    types.insert("webhook".to_owned(), Arc::new(WebhookFactory::default()));
}

/// Waits for a reason to stop: the caller's, or the deadline. Cancel safe.
pub(crate) async fn stopped(cancel: &CancellationToken, deadline: Instant) -> FailureKind {
    if deadline <= Instant::now() && !cancel.is_cancelled() {
        return FailureKind::Timeout; // A timer would fire a tick later.
    }
    tokio::select! {
        biased;
        () = cancel.cancelled() => FailureKind::Cancelled,
        () = sleep_until(deadline) => FailureKind::Timeout,
    }
}
