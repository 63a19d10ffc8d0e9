//! `rate_limit`: so many in so much time.

use std::sync::Arc;
use std::time::Duration;

use gatehook_events::{Event, Input};
use serde_json::Value;
use tokio::time::Instant;

use super::sessions::Sessions;
use super::{Arguments, Judge, Judging, NoText, deny};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

/// Parts of a window that are counted by themselves. An event counts until its whole part has left the window, so that
/// no window of any beginning has more than the limit.
const PARTS: u32 = 60;

/// Where a payload says what is counted by.
type Scope = fn(&Input) -> Option<&str>;

/// What an event is counted by, and the word for it.
const SCOPES: &[(&str, Scope)] = &[
    ("session", |input| input.session_id.as_deref()),
    ("key", |input| input.client.as_deref()?.get("key_name")?.as_str()),
    ("address", |input| input.client.as_deref()?.get("address").and_then(Value::as_str).map(host)),
    ("user", |input| input.user.as_deref()),
    ("tool", |input| input.tool_name.as_deref()),
    ("model", |input| input.model_id.as_deref()),
    ("agent", |input| input.agent_name.as_deref()),
];

const UNITS: &[(&str, u64)] =
    &[("s", 1), ("second", 1), ("m", 60), ("minute", 60), ("h", 3600), ("hour", 3600), ("d", 86_400), ("day", 86_400)];

struct RateLimit {
    limit: u64,
    window: Duration,
    written: String,
    scopes: Vec<Scope>,
    start: Instant,
    counts: Sessions<Window>,
}

/// Counts of the parts of one window, by the number of the part since the start.
#[derive(Debug, Default)]
struct Window {
    parts: Vec<(u64, u64)>,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let words = SCOPES.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let help = format!("as in `args: [20/minute, key]`; it counts by session, or by {words}, or by `all` together");
    let wrong = |message: &str| Arguments::wrong(message, &help);
    let (rate, scopes) = arguments.args.split_first().ok_or_else(|| wrong("`rate_limit` takes a rate"))?;
    let (limit, window) = read(rate).ok_or_else(|| wrong("this is no rate"))?;
    let scopes = match scopes {
        [] => vec![SCOPES.iter().find_map(|(name, of)| (*name == "session").then_some(*of))],
        [all] if all == "all" => Vec::new(),
        given => given.iter().map(|word| SCOPES.iter().find_map(|(name, of)| (name == word).then_some(*of))).collect(),
    };
    let scopes = scopes.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| wrong("nothing is counted by this"))?;
    let (start, counts) = (Instant::now(), Sessions::default());
    Ok(Judging::handler(RateLimit { limit, window, written: rate.clone(), scopes, start, counts }))
}

/// `20/minute`, `5/10s`.
fn read(rate: &str) -> Option<(u64, Duration)> {
    let (limit, per) = rate.split_once('/')?;
    let limit = limit.trim().parse().ok().filter(|limit| *limit > 0)?;
    let per = per.trim();
    let digits = per.find(|char: char| !char.is_ascii_digit()).unwrap_or(per.len());
    let (count, unit) = per.split_at_checked(digits)?;
    let unit = unit.trim();
    let seconds = UNITS.iter().find_map(|(name, seconds)| {
        (unit == *name || unit.strip_suffix('s').is_some_and(|one| one == *name)).then_some(*seconds)
    })?;
    let count = if count.is_empty() { 1 } else { count.parse().ok()? };
    let seconds = seconds.checked_mul(count).filter(|seconds| (1..=366 * 86_400).contains(seconds))?;
    Some((limit, Duration::from_secs(seconds)))
}

/// An address without its port.
fn host(address: &str) -> &str {
    address
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':') || host.ends_with(']'))
        .map_or(address, |(host, _)| host)
}

impl Window {
    /// Counts one more if there is room; else how many parts must pass until there is.
    fn admit(&mut self, now: u64, limit: u64) -> Result<(), u64> {
        self.parts.retain(|(part, _)| part + u64::from(PARTS) >= now);
        if self.parts.iter().map(|(_, count)| count).sum::<u64>() >= limit {
            let first = self.parts.first().map_or(now, |(part, _)| *part);
            return Err((first + u64::from(PARTS) + 1).saturating_sub(now).max(1));
        }
        match self.parts.last_mut() {
            Some((part, count)) if *part == now => *count += 1,
            _ => self.parts.push((now, 1)),
        }
        Ok(())
    }
}

impl Judge for RateLimit {
    const STREAMS: Streaming = Streaming::Scan;

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(NoText::default()))
    }

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        // A streamed answer is one answer, in however many parts it is shown.
        if input.segment.as_ref().is_some_and(|segment| segment.index > 0) {
            return Ok(None);
        }
        // Lengths stand before the names, so that no two lists of names read the same.
        let name = |of: &Scope| of(input).map_or_else(|| "-".to_owned(), |it| format!("{}:{it}", it.len()));
        let name: String = self.scopes.iter().map(name).collect();
        let part = self.window / PARTS;
        let now = self.start.elapsed().as_nanos() / part.as_nanos().max(1);
        let now = u64::try_from(now).unwrap_or(u64::MAX / 2);
        let admitted = self.counts.with(&name, |window| window.admit(now, self.limit));
        Ok(admitted.err().map(|parts| {
            let wait = part.saturating_mul(u32::try_from(parts).unwrap_or(u32::MAX)).as_secs_f64().ceil();
            deny(event, format!("the limit of {} is reached; try again in {wait} s", self.written))
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::tests::{executor, verdict_of};
    use super::*;

    #[test]
    fn rates_are_read() {
        for (rate, want) in [
            ("20/minute", Some((20, 60))),
            ("5/10s", Some((5, 10))),
            ("1/h", Some((1, 3600))),
            ("3 / 2 days", Some((3, 172_800))),
            ("0/minute", None),
            ("20", None),
            ("20/fortnight", None),
            ("-1/s", None),
            ("1/0s", None),
            ("1/99999999999999999999s", None),
        ] {
            assert_eq!(read(rate), want.map(|(limit, seconds)| (limit, Duration::from_secs(seconds))), "{rate}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_reached_and_passes_with_time() {
        let executor = executor(Event::PreInference, "rate_limit", &["2/minute"]).unwrap();
        let ask = async |session: &str| {
            verdict_of(&executor, Event::PreInference, json!({"session_id": session, "messages": []})).await
        };
        assert!(ask("a").await.allowed && ask("a").await.allowed);
        let refused = ask("a").await;
        assert!(!refused.allowed && refused.message.contains("2/minute"), "{}", refused.message);
        assert!(ask("b").await.allowed, "another session has its own");
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(!ask("a").await.allowed);
        tokio::time::advance(Duration::from_secs(32)).await;
        assert!(ask("a").await.allowed);
    }

    #[tokio::test(start_paused = true)]
    async fn it_counts_by_what_it_is_told() {
        for (args, other, shared) in [
            (&["1/hour", "tool"][..], json!({"session_id": "t", "tool_name": "x"}), true),
            (&["1/hour", "session", "tool"], json!({"session_id": "s", "tool_name": "y"}), false),
            (&["1/hour", "all"], json!({"session_id": "t", "tool_name": "y"}), true),
            (&["1/hour", "key"], json!({"client": {"key_name": "k"}}), false),
        ] {
            let executor = executor(Event::ToolGuard, "rate_limit", args).unwrap();
            let first = json!({"session_id": "s", "tool_name": "x"});
            assert!(verdict_of(&executor, Event::ToolGuard, first).await.allowed);
            assert_eq!(verdict_of(&executor, Event::ToolGuard, other).await.allowed, !shared, "{args:?}");
        }
    }

    proptest! {
        #[test]
        fn no_window_has_more_than_the_limit(gaps in prop::collection::vec(0_u64..40, 1..200), limit in 1_u64..6) {
            let (mut window, mut now, mut admitted) = (Window::default(), 0, Vec::new());
            for gap in gaps {
                now += gap;
                if window.admit(now, limit).is_ok() {
                    admitted.push(now);
                }
                let within = admitted.iter().filter(|at| **at + u64::from(PARTS) > now).count();
                prop_assert!(within as u64 <= limit, "{admitted:?}");
                prop_assert!(window.parts.len() <= PARTS as usize + 1);
            }
        }
    }
}
