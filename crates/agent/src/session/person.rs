//! The person at the terminal, where there is one.

use std::pin::Pin;

use crate::approval::Asks;

/// A yes or no to come.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// Whom a session asks.
pub trait Person: Asks {
    /// Whether to go on past so many iterations. The future is dropped when the run is cancelled.
    fn goes_on<'a>(&'a self, iterations: u64) -> Deciding<'a>;
}
