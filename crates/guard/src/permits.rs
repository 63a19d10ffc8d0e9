//! A person, where a host has one: whom hooks want asked.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use gatehook_engine::events::{Decision, Event, Input, Verb, Verdict};

/// Asks a person whether an exchange goes on, where a hook wants that.
pub trait Permits: Send + Sync {
    /// Asks, for as long as it takes. The future is dropped when the exchange is given up.
    fn permits<'a>(&'a self, event: Event, input: &'a Input, verdict: &'a Verdict) -> Permitting<'a>;
}

/// A yes or no to come.
pub type Permitting<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// Somebody to ask, or nobody: then what a hook wants asked is refused.
#[derive(Clone, Default)]
pub(crate) struct Person(pub(crate) Option<Arc<dyn Permits>>);

impl Person {
    /// Whoever is to be asked, where hooks have left it to them.
    pub(crate) fn asked(&self, verdict: &Verdict) -> Option<&dyn Permits> {
        self.0.as_deref().filter(|_| verdict.allowed && verdict.verb == Verb::Ask)
    }
}

/// Takes the person's word.
pub(crate) async fn settle(person: &dyn Permits, event: Event, input: &Input, mut verdict: Verdict) -> Verdict {
    if person.permits(event, input, &verdict).await {
        (verdict.verb, verdict.decision) = (Verb::Allow, Some(Decision::Allow));
        return verdict;
    }
    verdict.allowed = false;
    (verdict.verb, verdict.decision) = (Verb::Deny, Some(Decision::Deny));
    verdict.decision_reason = match verdict.decision_reason.as_str() {
        "" => "The user said no.".to_owned(),
        reason => format!("The user said no. A hook had asked: {reason}"),
    };
    if let Some(refusal) = &mut verdict.refusal {
        refusal.user_message = None;
    }
    verdict
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "somebody" } else { "nobody" })
    }
}
