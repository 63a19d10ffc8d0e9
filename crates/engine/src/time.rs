//! The clock, as payloads and logs write it.

use std::time::SystemTime;

use jiff::{Timestamp, Unit};

/// Now, RFC 3339 in UTC, to the millisecond.
pub(crate) fn now() -> String {
    written(Timestamp::now())
}

/// A time, RFC 3339 in UTC, to the millisecond.
pub fn rfc3339(time: SystemTime) -> String {
    Timestamp::try_from(time).map(written).unwrap_or_default()
}

fn written(time: Timestamp) -> String {
    time.round(Unit::Millisecond).unwrap_or(time).to_string()
}
