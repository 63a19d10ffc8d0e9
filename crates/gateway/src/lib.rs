//! The inference gateway: stands in front of inference servers and lets hooks judge what passes.
//!
//! The way of one request: `worker` accepts, `connection` speaks HTTP, `exchange` leads it through host, origin
//! and key checks, the path table (`paths`), the hooks before the call, the upstream (`forward`) and the hooks after.
//! Where no hook looks, bodies stream through as they come and nothing is read; where one looks at a stream, `live`
//! drives it through its gate.
//!
//! - [`config`]: what a gateway is told; [`settings`]: how a file says it. [`gateway`]: starting, changing and stopping one.
//! - `upstream`, `pool`, `replay`: where requests go. `refuse`: how the gateway itself says no.
//! - `models`: where models are that judge for hooks or answer an agent; the former are asked by the engine's own client.
//! - `keys`, `origin`: who may call. `metrics`: what is counted. [`Watch`]: when a configuration has changed.
//!
//! Each core has a thread with its own runtime, listening socket, connections and upstream pool; threads share the
//! configuration in force, the counters and the bound on bodies in flight, nothing else.

mod aside;
mod body;
mod completed;
mod connection;
mod dial;
mod encoding;
mod exchange;
mod forward;
mod framing;
mod gather;
mod guarded;
mod headers;
mod keys;
mod live;
mod metrics;
mod models;
mod origin;
mod paths;
mod pool;
mod refuse;
mod reload;
mod replay;
mod request_id;
mod source;
mod state;
mod upstream;
mod worker;

pub mod config;
pub mod gateway;
pub mod settings;

pub use config::Config;
pub use gateway::{Gateway, Handle, StartError};
pub use keys::KeyError;
#[cfg(fuzzing)]
pub use models::wire;
pub use models::{Habits, ModelConfig, ModelPlace, Models, PROVIDERS, Prices, Target};
pub use reload::Watch;
pub use upstream::UpstreamError;
