//! `cargo xtask bench gateway`: the gateway against nginx, and against itself without hooks.

use super::Options;
use super::comparison::Figure::{Median, Rate};
use super::comparison::{Comparison, measure};
use super::report::Bound::{AtLeast, AtMost, Open};
use super::report::{Report, Row};
use super::stand::Server::{Nginx, Plain, Redacting, Webhooks};
use super::stand::{GATEWAY, Stand, nginx_version};
use crate::Outcome;

#[rustfmt::skip]
const COMPARISONS: &[Comparison] = &[
    Comparison { what: "JSON, no hooks, 1 connection: p50", exchange: "small", connections: 1, figure: Median, server: Plain, yardstick: Nginx, bound: AtMost(1.2) },
    Comparison { what: "JSON, no hooks, 32 connections: requests/s", exchange: "small", connections: 32, figure: Rate, server: Plain, yardstick: Nginx, bound: AtLeast(0.7) },
    Comparison { what: "redact_secrets on both sides, 4 KiB bodies, 32 connections: requests/s", exchange: "large", connections: 32, figure: Rate, server: Redacting, yardstick: Plain, bound: AtLeast(0.85) },
    Comparison { what: "webhooks on both sides, 1 connection: p50", exchange: "small", connections: 1, figure: Median, server: Webhooks, yardstick: Plain, bound: AtMost(3.0) },
    Comparison { what: "webhooks on both sides, 32 connections: requests/s", exchange: "small", connections: 32, figure: Rate, server: Webhooks, yardstick: Plain, bound: AtLeast(0.4) },
];

pub(crate) fn run(options: &Options) -> Outcome<Report> {
    let nginx = nginx_version()?;
    let mut stand = Stand::build(GATEWAY)?;
    let idle = stand.memory(Plain, "small")?;
    let mut rows = measure(&mut stand, COMPARISONS, options)?;
    rows.push(Row::memory("resident memory, idle", idle, AtMost(25.0)));
    rows.push(Row::memory("resident memory after the load above", stand.memory(Plain, "small")?, Open));
    Ok(Report::new("gateway", &[nginx], rows))
}
