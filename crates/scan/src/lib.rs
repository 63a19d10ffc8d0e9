//! Recognises secrets in text and redacts them; so it does personal data, in [`pii`].
//!
//! [`find()`] names every secret in a text, [`redact()`] replaces each by [`MARKER`]. What is recognised is one
//! table, [`rules()`]: the published formats of some two hundred vendors' keys, and a few shapes that need no vendor.
//!
//! Most text holds no secret, so most of the work is to be sure of that quickly. Nearly every secret stands in a run of at
//! least sixteen token characters, which prose seldom has: `run` finds those runs, `assignment` tells what name
//! a run is the value of, `prefilter` picks the rules whose literals are there, and only those rules' patterns
//! are compiled and tried. A few shapes that need no run (a private key, a password in a URL) are found by a literal.
//!
//! The result is the same as trying each rule at each byte; the time is linear in the text. No IO, no runtime.
//!
//! A text that still grows is followed by [`Carry`] (secrets) or [`Growing`] (regular expressions): each push tells up to
//! where the text is [`Settled`]. `growth` steps a pattern byte by byte and knows where the earliest match under way began;
//! `attempts` does so for the rules whose literals have come.

mod apart;
mod assignment;
mod attempts;
mod carry;
mod context;
mod find;
mod growing;
mod growth;
pub mod pii;
mod prefilter;
mod redact;
mod restore;
mod rule;
mod rules;
mod run;
mod settled;

#[cfg(test)]
mod tests;

pub use carry::Carry;
pub use context::{CONTEXT, context};
pub use find::{Finding, find};
pub use growing::{Found, Growing, PatternError, Patterns};
pub use redact::{MARKER, redact, redact_in_place};
pub use restore::{Restore, Restoring};
pub use rule::Rule;
pub use rules::rules;
pub use settled::{HOLD_LIMIT, Settled, is_plain};
