//! The clock, as payloads and logs write it.

use jiff::{Timestamp, Unit};

/// Now, RFC 3339 in UTC, to the millisecond.
pub(crate) fn now() -> String {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now).to_string()
}
