//! `cargo xtask bench stream`: streamed answers, through nginx, through the gateway, and past hooks of each kind.

use super::Options;
use super::comparison::Figure::{Cost, Delay, End, FirstByte, FirstText, Rate, Together};
use super::comparison::{Comparison, measure};
use super::report::Bound::{AtLeast, AtMost, MoreBy, Open};
use super::report::{Report, Row};
use super::stand::Server::{Buffering, Direct, Nginx, Observing, Plain, Scanning, Windowed};
use super::stand::{GATEWAY, Stand, nginx_version};
use crate::Outcome;

#[rustfmt::skip]
const COMPARISONS: &[Comparison] = &[
    Comparison { what: "23 frames at once, no hooks, 1 stream: first byte p50", exchange: "stream", connections: 1, figure: FirstByte, server: Plain, yardstick: Nginx, bound: AtMost(1.3) },
    Comparison { what: "the same, redact_secrets", exchange: "stream", connections: 1, figure: FirstByte, server: Scanning, yardstick: Plain, bound: AtMost(1.2) },
    Comparison { what: "the same, windowed webhook", exchange: "stream", connections: 1, figure: FirstByte, server: Windowed, yardstick: Plain, bound: Open },
    Comparison { what: "23 frames at once, no hooks, 32 streams: streams/s", exchange: "stream", connections: 32, figure: Rate, server: Plain, yardstick: Nginx, bound: AtLeast(0.5) },
    Comparison { what: "the same, redact_secrets", exchange: "stream", connections: 32, figure: Rate, server: Scanning, yardstick: Plain, bound: Open },

    Comparison { what: "1,000 frames at once, 8 streams, no hooks: processor time of a frame", exchange: "frames", connections: 8, figure: Cost, server: Plain, yardstick: Nginx, bound: Open },
    Comparison { what: "the same, observing webhook", exchange: "frames", connections: 8, figure: Cost, server: Observing, yardstick: Plain, bound: MoreBy(Some(5.0)) },
    Comparison { what: "the same, redact_secrets", exchange: "frames", connections: 8, figure: Cost, server: Scanning, yardstick: Plain, bound: MoreBy(Some(5.0)) },
    Comparison { what: "the same, windowed webhook", exchange: "frames", connections: 8, figure: Cost, server: Windowed, yardstick: Plain, bound: MoreBy(None) },
    Comparison { what: "the same, buffering webhook", exchange: "frames", connections: 8, figure: Cost, server: Buffering, yardstick: Plain, bound: MoreBy(None) },

    Comparison { what: "100 frames 10 ms apart, 32 streams, no hooks: processor time of a frame", exchange: "paced", connections: 32, figure: Cost, server: Plain, yardstick: Nginx, bound: Open },
    Comparison { what: "the same, redact_secrets", exchange: "paced", connections: 32, figure: Cost, server: Scanning, yardstick: Plain, bound: MoreBy(Some(5.0)) },
    Comparison { what: "the same, windowed webhook", exchange: "paced", connections: 32, figure: Cost, server: Windowed, yardstick: Plain, bound: MoreBy(None) },

    Comparison { what: "100 frames 10 ms apart, 32 streams, no hooks: delay of a frame p99", exchange: "paced", connections: 32, figure: Delay, server: Plain, yardstick: Direct, bound: MoreBy(Some(1.0)) },
    Comparison { what: "the same, observing webhook", exchange: "paced", connections: 32, figure: Delay, server: Observing, yardstick: Direct, bound: MoreBy(Some(1.0)) },
    Comparison { what: "100 frames 10 ms apart, 32 streams, no hooks: frames that come with the one before", exchange: "paced", connections: 32, figure: Together, server: Plain, yardstick: Direct, bound: MoreBy(Some(0.1)) },
    Comparison { what: "the same, observing webhook", exchange: "paced", connections: 32, figure: Together, server: Observing, yardstick: Direct, bound: MoreBy(Some(0.1)) },

    Comparison { what: "100 frames 10 ms apart, 1 stream, windowed webhook: first text", exchange: "paced", connections: 1, figure: FirstText, server: Windowed, yardstick: Direct, bound: MoreBy(Some(60.0)) },
    Comparison { what: "the same, redact_secrets", exchange: "paced", connections: 1, figure: FirstText, server: Scanning, yardstick: Direct, bound: MoreBy(Some(60.0)) },
    Comparison { what: "the same, buffering webhook", exchange: "paced", connections: 1, figure: FirstText, server: Buffering, yardstick: Direct, bound: MoreBy(None) },
    Comparison { what: "100 frames 10 ms apart, 1 stream, windowed webhook: end", exchange: "paced", connections: 1, figure: End, server: Windowed, yardstick: Direct, bound: MoreBy(Some(20.0)) },
    Comparison { what: "the same, redact_secrets", exchange: "paced", connections: 1, figure: End, server: Scanning, yardstick: Direct, bound: MoreBy(Some(20.0)) },
    Comparison { what: "the same, buffering webhook", exchange: "paced", connections: 1, figure: End, server: Buffering, yardstick: Direct, bound: MoreBy(Some(20.0)) },

    Comparison { what: "100 frames 10 ms apart, 32 streams, windowed webhook: first text", exchange: "paced", connections: 32, figure: FirstText, server: Windowed, yardstick: Direct, bound: MoreBy(Some(60.0)) },
    Comparison { what: "the same, redact_secrets", exchange: "paced", connections: 32, figure: FirstText, server: Scanning, yardstick: Direct, bound: MoreBy(Some(60.0)) },
    Comparison { what: "the same, buffering webhook", exchange: "paced", connections: 32, figure: FirstText, server: Buffering, yardstick: Direct, bound: MoreBy(None) },
    Comparison { what: "100 frames 10 ms apart, 32 streams, windowed webhook: end", exchange: "paced", connections: 32, figure: End, server: Windowed, yardstick: Direct, bound: MoreBy(Some(20.0)) },
    Comparison { what: "the same, redact_secrets", exchange: "paced", connections: 32, figure: End, server: Scanning, yardstick: Direct, bound: MoreBy(Some(20.0)) },
    Comparison { what: "the same, buffering webhook", exchange: "paced", connections: 32, figure: End, server: Buffering, yardstick: Direct, bound: MoreBy(Some(20.0)) },
];

/// Streams that stand open at once.
const OPEN: usize = 2000;

pub(crate) fn run(options: &Options) -> Outcome<Report> {
    let nginx = nginx_version()?;
    let mut stand = Stand::build(GATEWAY)?;
    let mut rows = measure(&mut stand, COMPARISONS, options)?;
    println!("{OPEN} open streams");
    for (what, server) in [
        ("2,000 open streams, no hooks: resident memory", Plain),
        ("the same, redact_secrets", Scanning),
        ("the same, windowed webhook", Windowed),
        ("the same, buffering webhook", Buffering),
    ] {
        rows.push(Row::memory(what, stand.memory_of_open(server, OPEN)?, AtMost(100.0)));
    }
    Ok(Report::new("stream", &[nginx], rows))
}
