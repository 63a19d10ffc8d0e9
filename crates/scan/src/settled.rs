//! How far a text that still grows is settled.

/// Bytes of a match that still grows, beyond which it is not waited for.
pub const HOLD_LIMIT: usize = 256 * 1024;

/// What is known of a text after more of it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    /// Everything before this offset is settled: no continuation changes what is found in it, or lets a match begin in it
    /// and end behind it. In bytes of all that was pushed, on a character boundary; it never falls.
    pub upto: usize,
    /// Nothing was found in what has newly been settled.
    pub clean: bool,
    /// A match has grown over [`HOLD_LIMIT`] and is not waited for: whoever holds the text for it refuses.
    pub too_long: bool,
}
