//! A model that calls the same tools with the same arguments again and again.

use gatehook_engine::events::ToolCall;
use serde_json::Value;

/// Counts equal batches of calls in a row.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Vec<(String, String)>,
    times: usize,
}

impl Repeats {
    /// Takes a batch; how often it came in a row, where that is a loop: `limit` times or more.
    pub(super) fn count(&mut self, calls: &[ToolCall], limit: usize) -> Option<usize> {
        let batch: Vec<_> = calls.iter().map(canonical).collect();
        if batch == self.last {
            self.times += 1;
        } else {
            (self.last, self.times) = (batch, 1);
        }
        (self.times >= limit).then_some(self.times)
    }
}

/// A call without its identity; arguments by their meaning, where they have one.
fn canonical(call: &ToolCall) -> (String, String) {
    let written = &*call.function.arguments;
    let arguments =
        serde_json::from_str::<Value>(written).map_or_else(|_| written.to_owned(), |value| value.to_string());
    (call.function.name.to_string(), arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatehook_engine::events::FunctionCall;

    fn call(arguments: &str) -> ToolCall {
        let function = FunctionCall { name: "read".into(), arguments: arguments.into() };
        ToolCall { id: Some(format!("{arguments:p}").into()), function, ..ToolCall::default() }
    }

    #[test]
    fn the_fifth_equal_batch_in_a_row_is_a_loop_however_it_is_spelled() {
        let mut repeats = Repeats::default();
        let spelled = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{ "a": 1, "b": 2 }"#, r#"{"a":1,"b":2}"#];
        for batch in spelled {
            assert_eq!(repeats.count(&[call(batch)], 5), None);
        }
        assert_eq!(repeats.count(&[call(spelled[0])], 5), Some(5));
        assert_eq!(repeats.count(&[call("{}")], 5), None);
    }
}
