//! Servers under the same load, in turn, and what is read from it.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::report::{Bound, Row};
use super::stand::{Server, Stand};
use super::{Options, median};
use crate::Outcome;

/// A figure of one server, held against the same figure of another under the same load.
pub(super) struct Comparison {
    pub(super) what: &'static str,
    pub(super) exchange: &'static str,
    pub(super) connections: usize,
    pub(super) figure: Figure,
    pub(super) server: Server,
    pub(super) yardstick: Server,
    pub(super) bound: Bound,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Figure {
    /// Exchanges in a second.
    Rate,
    Median,
    FirstByte,
    /// From the request to the first text, of streams whose frames leave one by one.
    FirstText,
    /// From the request to the end, of the same.
    End,
    /// From leaving the upstream to arrival, of frames with text: 99 of 100 are faster.
    Delay,
    /// The share of frames that arrived with the one before.
    Together,
    /// What a frame takes of the server's processor.
    Cost,
}

impl Figure {
    /// The field that holds it, what one of it is in the unit, and the unit.
    fn reading(self) -> (&'static str, f64, &'static str) {
        match self {
            Self::Rate => ("rate", 1.0, "/s"),
            Self::Median => ("p50_us", 1.0, "µs"),
            Self::FirstByte => ("first_byte_p50_us", 1.0, "µs"),
            Self::FirstText => ("first_text_p50_us", 1e-3, "ms"),
            Self::End => ("p50_us", 1e-3, "ms"),
            Self::Delay => ("delay_p99_us", 1e-3, "ms"),
            Self::Together => ("together", 100.0, "%"),
            Self::Cost => ("cpu_us_per_frame", 1.0, "µs"),
        }
    }

    fn of(self, measured: &Value) -> Outcome<f64> {
        let (field, factor, _) = self.reading();
        let value = measured.get(field).and_then(Value::as_f64).ok_or_else(|| format!("no {field} in {measured}"))?;
        Ok(value * factor)
    }
}

/// A load: the exchange, and how many connections.
type Load = (&'static str, usize);

/// Measures what the rows want: all servers of one load in turn, as often as asked, each time in new processes, because
/// where a process happens to lie in memory makes it faster or slower for as long as it runs. Figures are medians, and so
/// is what they come to beside each other in each round.
pub(super) fn measure(stand: &mut Stand, comparisons: &[Comparison], options: &Options) -> Outcome<Vec<Row>> {
    let mut loads: Vec<(Load, Vec<Server>)> = vec![];
    for Comparison { exchange, connections, server, yardstick, .. } in comparisons {
        let load = (*exchange, *connections);
        if !loads.iter().any(|(known, _)| *known == load) {
            loads.push((load, vec![]));
        }
        for (_, servers) in loads.iter_mut().filter(|(known, _)| *known == load) {
            servers.extend([*yardstick, *server].iter().filter(|new| !servers.contains(new)).collect::<Vec<_>>());
        }
    }
    let mut measured: HashMap<(Server, Load), Vec<Value>> = HashMap::new();
    for (load, servers) in loads {
        let (exchange, connections) = load;
        println!(
            "{exchange}, {connections} at once: {}",
            servers.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ")
        );
        for _ in 0..options.rounds {
            stand.end_servers(exchange);
            for server in &servers {
                // What a server builds when it is first asked is no part of what it costs.
                stand.load(*server, exchange, connections, Duration::from_millis(1))?;
                let value = stand.load(*server, exchange, connections, time(exchange, options))?;
                measured.entry((*server, load)).or_default().push(value);
            }
        }
    }
    comparisons.iter().map(|comparison| comparison.row(&measured)).collect()
}

/// A paced stream takes a second; some of them must fit.
fn time(exchange: &str, options: &Options) -> Duration {
    if exchange == "paced" { options.seconds.max(Duration::from_secs(4)) } else { options.seconds }
}

impl Comparison {
    fn row(&self, measured: &HashMap<(Server, Load), Vec<Value>>) -> Outcome<Row> {
        let side = |server: Server| {
            let values = measured.get(&(server, (self.exchange, self.connections))).map_or(&[][..], Vec::as_slice);
            values.iter().map(|value| self.figure.of(value)).collect::<Outcome<Vec<f64>>>()
        };
        let (_, _, unit) = self.figure.reading();
        let (values, yardsticks) = (side(self.server)?, side(self.yardstick)?);
        let rounds = values.iter().copied().zip(yardsticks.iter().copied()).collect();
        let against = Some((self.yardstick.name().to_owned(), median(yardsticks)));
        Ok(Row { what: self.what.to_owned(), value: median(values), unit, against, rounds, bound: self.bound })
    }
}
