//! `max_cost`: a session may cost so much, and no model call is made beyond.

use std::sync::Arc;

use gatehook_events::{Event, Input};
use serde_json::Value;

use super::sessions::Sessions;
use super::{Arguments, Judge, Judging, deny};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::streaming::Streaming;

/// What sessions have cost, shared by the hooks that add to it and those that block. A hook of another cap has a sum of
/// its own.
pub(super) type Ledger = Sessions<f64>;

struct MaxCost {
    cap: f64,
    written: String,
    ledger: Arc<Ledger>,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let cap = match arguments.args {
        [cap] => cap.trim().trim_start_matches('$').parse::<f64>().ok().filter(|cap| cap.is_finite() && *cap > 0.0),
        _ => None,
    };
    let Some(cap) = cap else {
        return Err(Arguments::wrong("`max_cost` takes one number above 0", "as in `args: [\"1.50\"]`"));
    };
    let written = cap.to_string();
    Ok(Judging::handler(MaxCost { cap, written, ledger: Arc::clone(&arguments.memory.costs) }))
}

impl Judge for MaxCost {
    const STREAMS: Streaming = Streaming::Observe;

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let session = input.session_id.as_deref().unwrap_or_default();
        let name = format!("{} {session}", self.written);
        if matches!(event, Event::AfterLlmCall | Event::PostInference) {
            let cost = cost(input);
            self.ledger.with(&name, |sum| *sum += cost);
            return Ok(None);
        }
        let sum = self.ledger.with(&name, |sum| *sum);
        let reason = || format!("this session has cost {sum:.4}, and may cost {}", self.written);
        Ok((sum >= self.cap).then(|| deny(event, reason())))
    }
}

/// What the call cost; what has no price costs nothing.
fn cost(input: &Input) -> f64 {
    let of_usage = || input.usage.as_ref()?.get("cost").and_then(Value::as_f64);
    input.cost.or_else(of_usage).filter(|cost| cost.is_finite() && *cost > 0.0).unwrap_or(0.0)
}

impl MaxCost {
    #[cfg(test)]
    fn sum(&self, session: &str) -> f64 {
        self.ledger.with(&format!("{} {session}", self.written), |sum| *sum)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{hooks, verdict_of};
    use super::*;

    #[tokio::test]
    async fn a_session_that_has_cost_its_cap_makes_no_more_calls() {
        let events = [Event::AfterLlmCall, Event::BeforeLlmCall, Event::PreInference, Event::PostInference];
        let executor = hooks(&events.map(|event| (event, "max_cost", &["1.50"][..])));
        let say = async |event, session: &str, fields: Value| {
            let mut input = fields;
            input["session_id"] = session.into();
            verdict_of(&executor, event, input).await.allowed
        };
        for (cost, still_allowed) in [(json!({"cost": 1.0}), true), (json!({}), true), (json!({"cost": 0.5}), false)] {
            assert!(say(Event::AfterLlmCall, "a", cost.clone()).await);
            assert_eq!(say(Event::BeforeLlmCall, "a", json!({})).await, still_allowed, "{cost}");
        }
        assert!(!say(Event::PreInference, "a", json!({"messages": []})).await);
        assert!(say(Event::BeforeLlmCall, "b", json!({})).await, "another session");
        assert!(say(Event::PostInference, "b", json!({"usage": {"cost": 2.0}})).await);
        assert!(!say(Event::PreInference, "b", json!({"messages": []})).await);
    }

    #[test]
    fn what_is_no_cost_adds_nothing() {
        for usage in [json!({"cost": -5.0}), json!({"cost": "5"}), json!(null)] {
            let input = Input { usage: Some(usage.clone()), ..Input::default() };
            assert!(cost(&input).abs() < f64::EPSILON, "{usage}");
        }
        let ledger = Arc::default();
        let max_cost = MaxCost { cap: 1.0, written: "1".to_owned(), ledger };
        max_cost
            .judge(Event::AfterLlmCall, &Input { cost: Some(0.25), ..Input::default() }, &Others::default())
            .unwrap();
        assert!((max_cost.sum("") - 0.25).abs() < f64::EPSILON);
    }
}
