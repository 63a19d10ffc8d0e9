//! What is counted, for Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use gatehook_inference::{Path, Route, TextRoute};
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Bounds of latencies, in seconds.
const LATENCY: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0, 300.0];
/// Bounds of hooks' durations, in seconds.
const HOOK_LATENCY: [f64; 10] = [0.000_01, 0.000_1, 0.000_5, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0];

/// How many of a gateway's own numbers a place has: 1xx to 5xx.
const CLASSES: usize = 5;
/// Six routes, four that take text, and the rest.
const PLACES: usize = Route::ALL.len() + TextRoute::ALL.len() + 1;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    event: &'static str,
    hook: Arc<str>,
    verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    event: &'static str,
    hook: Arc<str>,
}

/// The counters of one gateway, shared by its threads and kept across reloads.
pub(crate) struct Metrics {
    registry: Registry,
    requests: [[Counter; CLASSES]; PLACES],
    upstream: [Histogram; PLACES],
    verdicts: Family<VerdictLabels, Counter>,
    hooks: Family<HookLabels, Histogram>,
    /// Streams that hooks look at.
    streams: Gauge,
    /// Streams that a hook ended after they had begun.
    pub(crate) streams_blocked: Counter,
    /// Failing hooks that let something pass.
    pub(crate) hooks_passed_over: Counter,
    /// Connections of clients.
    pub(crate) connections: Gauge,
    /// Bytes of bodies that are held for hooks.
    pub(crate) bodies: Gauge,
    /// Reloads that were refused.
    pub(crate) reloads_refused: Counter,
}

/// Which of [`PLACES`] a path counts under.
fn place(path: Option<Path>) -> usize {
    match path {
        Some(Path::Route(route)) => route as usize,
        Some(Path::Text(route)) => Route::ALL.len() + route as usize,
        None => PLACES - 1,
    }
}

fn name_of(place: usize) -> &'static str {
    let route = Route::ALL.get(place).map(|route| route.path());
    let text = || place.checked_sub(Route::ALL.len()).and_then(|place| TextRoute::ALL.get(place));
    route.or_else(|| text().map(|route| route.path())).unwrap_or("other")
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("gatehook");
        let requests = Family::<RequestLabels, Counter>::default();
        let upstream = Family::<RouteLabels, Histogram>::new_with_constructor(|| Histogram::new(LATENCY));
        let hooks = Family::<HookLabels, Histogram>::new_with_constructor(|| Histogram::new(HOOK_LATENCY));
        let metrics = Self {
            requests: std::array::from_fn(|place| {
                std::array::from_fn(|class| {
                    let status = ["1xx", "2xx", "3xx", "4xx", "5xx"].get(class).copied().unwrap_or("?");
                    requests.get_or_create_owned(&RequestLabels { route: name_of(place), status })
                })
            }),
            upstream: std::array::from_fn(|place| upstream.get_or_create_owned(&RouteLabels { route: name_of(place) })),
            verdicts: Family::default(),
            hooks,
            streams: Gauge::default(),
            streams_blocked: Counter::default(),
            hooks_passed_over: Counter::default(),
            connections: Gauge::default(),
            bodies: Gauge::default(),
            reloads_refused: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("requests", "Requests by route and status class", requests);
        registry.register_with_unit("upstream_first_byte", "Time to an upstream's head", Unit::Seconds, upstream);
        registry.register("verdicts", "Verdicts by event, hook and verb", metrics.verdicts.clone());
        registry.register_with_unit("hook_duration", "Time a hook took", Unit::Seconds, metrics.hooks.clone());
        let counters = [
            ("streams_blocked", "Streams that a hook ended after they had begun", &metrics.streams_blocked),
            ("hooks_passed_over", "Failing hooks that let something pass", &metrics.hooks_passed_over),
            ("reloads_refused", "Configurations that were not put in force", &metrics.reloads_refused),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register("connections", "Connections of clients", metrics.connections.clone());
        registry.register("streams_open", "Streams that hooks look at", metrics.streams.clone());
        registry.register("held_body_bytes", "Bytes of bodies and streams held for hooks", metrics.bodies.clone());
        Self { registry, ..metrics }
    }

    /// A response went out.
    pub(crate) fn responded(&self, path: Option<Path>, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.requests.get(place(path)).and_then(|classes| classes.get(class)) {
            counter.inc();
        }
    }

    /// An upstream began to answer.
    pub(crate) fn answered(&self, path: Option<Path>, after: Duration) {
        if let Some(histogram) = self.upstream.get(place(path)) {
            histogram.observe(after.as_secs_f64());
        }
    }

    /// A stream that hooks look at has begun.
    pub(crate) fn open_stream(&self) -> OpenStream {
        self.streams.inc();
        OpenStream(self.streams.clone())
    }

    /// A hook judged.
    pub(crate) fn judged(&self, event: &'static str, outcome: &gatehook_engine::events::Outcome) {
        let hook = outcome.name.clone();
        self.hooks.get_or_create(&HookLabels { event, hook: hook.clone() }).observe(outcome.duration.as_secs_f64());
        self.verdicts.get_or_create(&VerdictLabels { event, hook, verb: outcome.verb.name() }).inc();
    }

    /// All of it in the text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            let _ = text.write_str("# unreadable\n");
        }
        text
    }
}

/// An open stream, as it is counted.
pub(crate) struct OpenStream(Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_class() {
        let metrics = Metrics::new();
        metrics.responded(Some(Path::Route(Route::Messages)), http::StatusCode::OK);
        metrics.responded(Some(Path::Text(TextRoute::Embed)), http::StatusCode::BAD_GATEWAY);
        metrics.responded(None, http::StatusCode::NOT_FOUND);
        let text = metrics.text();
        for line in [
            "gatehook_requests_total{route=\"/v1/messages\",status=\"2xx\"} 1",
            "gatehook_requests_total{route=\"/api/embed\",status=\"5xx\"} 1",
            "gatehook_requests_total{route=\"other\",status=\"4xx\"} 1",
            "gatehook_streams_blocked_total 0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
