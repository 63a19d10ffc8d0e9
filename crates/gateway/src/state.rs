//! What is in force: a configuration, checked, and what all threads share beside it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use gatehook_guard::{Guard, Refusal};
use gatehook_inference::ErrorKind;
use http::HeaderValue;

use crate::config::{Config, Door, Limits, Streams};
use crate::gateway::StartError;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::origin::Origins;
use crate::upstream::Upstream;

/// A configuration in force. Requests keep the one they began with.
pub(crate) struct State {
    pub(crate) limits: Limits,
    pub(crate) streams: Streams,
    pub(crate) keys: Keys,
    pub(crate) origins: Origins,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) management: Door,
    pub(crate) unknown_paths: Door,
    /// The hooks; none where none is configured for inference.
    pub(crate) guard: Option<Arc<Guard>>,
}

impl State {
    pub(crate) fn new(config: &Config) -> Result<Self, StartError> {
        if config.upstreams.is_empty() {
            return Err(StartError::NoUpstream);
        }
        let loopback = config.listen.address.ip().is_loopback();
        if !loopback && config.keys.is_empty() && !config.listen.open {
            return Err(StartError::Open { address: config.listen.address });
        }
        Ok(Self {
            limits: config.limits.clone(),
            streams: config.streams.clone(),
            keys: Keys::new(&config.keys)?,
            origins: Origins::new(loopback, &config.listen.hosts, &config.listen.origins),
            upstreams: config.upstreams.iter().map(Upstream::new).collect::<Result<_, _>>()?,
            management: config.management,
            unknown_paths: config.unknown_paths,
            guard: config.guard.clone(),
        })
    }

    /// Whether the upstream is chosen by the model that a request names.
    pub(crate) fn chooses_by_model(&self) -> bool {
        self.upstreams.len() > 1 && self.upstreams.iter().any(|upstream| !upstream.models.is_empty())
    }

    /// The upstream for a model: the first that claims it, else the first that claims none by name, else the first.
    pub(crate) fn upstream(&self, model: Option<&str>) -> Option<&Upstream> {
        model
            .and_then(|model| self.upstreams.iter().find(|upstream| upstream.claims(model)))
            .or_else(|| self.upstreams.iter().find(|upstream| upstream.models.is_empty()))
            .or(self.upstreams.first())
    }
}

/// What the threads of a gateway share.
pub(crate) struct Shared {
    pub(crate) state: ArcSwap<State>,
    pub(crate) metrics: Metrics,
    pub(crate) bodies: Budget,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self { state: ArcSwap::from_pointee(state), metrics: Metrics::new(), bodies: Budget::default() }
    }
}

/// How this process names itself to whom it calls: its own requests, and no others, are loops.
pub(crate) fn via() -> &'static HeaderValue {
    static VIA: LazyLock<HeaderValue> = LazyLock::new(|| {
        let via = format!("1.1 gatehook-{:016x}", fastrand::u64(..));
        HeaderValue::from_str(&via).unwrap_or(HeaderValue::from_static("1.1 gatehook"))
    });
    &VIA
}

/// How many bytes are held at one time: of bodies, and for reading them.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    held: AtomicUsize,
}

/// In which a stream's bytes are counted.
const PAGE: usize = 4096;

/// Some bytes of the budget, given back when dropped.
pub(crate) struct Held {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Held {
    pub(crate) fn none(shared: Arc<Shared>) -> Self {
        Self { shared, bytes: 0 }
    }

    /// Takes more bytes; refused where they exceed `limit` in all.
    pub(crate) fn grow(&mut self, bytes: usize, limit: usize) -> Result<(), Refusal> {
        let budget = &self.shared.bodies;
        let before = budget.held.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > limit {
            budget.held.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Refusal::new(ErrorKind::Overloaded));
        }
        self.bytes += bytes;
        self.shared.metrics.bodies.inc_by(bytes.try_into().unwrap_or(i64::MAX));
        Ok(())
    }

    /// Holds this many bytes from now on, counted in pages: what grows and falls by a word at a time costs nothing.
    pub(crate) fn set(&mut self, bytes: usize, limit: usize) -> Result<(), Refusal> {
        let bytes = bytes.next_multiple_of(PAGE);
        match bytes.checked_sub(self.bytes) {
            Some(0) => Ok(()),
            Some(more) => self.grow(more, limit),
            None => {
                self.give_back(self.bytes - bytes);
                Ok(())
            }
        }
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.shared.bodies.held.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.metrics.bodies.dec_by(bytes.try_into().unwrap_or(i64::MAX));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}
