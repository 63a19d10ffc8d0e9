//! What is known of a text that still grows.

/// The most that is held back of a growing text, in bytes. A match that is longer is for no one to wait for.
pub const HOLD_LIMIT: usize = 256 << 10;

/// How far a text that still grows is settled. Offsets are in bytes of all that was pushed, on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// Everything before is settled: no continuation changes what is found in it, and nothing that is found begins
    /// in it and ends behind it. Never goes back.
    pub upto: usize,
    /// Nothing was found in what has newly been settled. Where it is `false` something may be: that text is to be
    /// looked at, together with what it follows on.
    pub clean: bool,
    /// More than [`HOLD_LIMIT`] bytes are held, and nothing more will be settled.
    pub too_long: bool,
}
