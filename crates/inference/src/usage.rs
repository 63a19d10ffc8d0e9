//! Tokens used, whatever a server calls them.

use serde_json::Value;

use crate::route::{Route, Wire};

/// How many tokens a question and its answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Of the question; those read from or written to a cache included.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
    /// Of the question, those written to a cache.
    pub cached: u64,
    /// Of the question, those read from a cache.
    pub recalled: u64,
}

/// Where a family's counters stand: of the question, of the answer, and of the cache, written and read. Anthropic counts
/// its cache beside the question, the others within it.
type Counters = (Wire, &'static [&'static str], &'static str, &'static str, &'static str);

const COUNTERS: &[Counters] = &[
    (Wire::Ollama, &["/prompt_eval_count"], "/eval_count", "", ""),
    (Wire::OpenAi, &["/prompt_tokens"], "/completion_tokens", "", "/prompt_tokens_details/cached_tokens"),
    (
        Wire::Anthropic,
        &["/input_tokens", "/cache_creation_input_tokens", "/cache_read_input_tokens"],
        "/output_tokens",
        "/cache_creation_input_tokens",
        "/cache_read_input_tokens",
    ),
];

impl Tokens {
    /// The counters of a `usage` as servers of `route` write it, but not Responses; what is not counted is 0.
    pub fn of(route: Route, usage: &Value) -> Self {
        let count = |way: &str| match way {
            "" => 0,
            way => usage.pointer(way).and_then(Value::as_u64).unwrap_or(0),
        };
        let row = COUNTERS.iter().find(|(wire, ..)| *wire == route.wire());
        row.map_or(Self::default(), |(_, asked, answered, cached, recalled)| Self {
            input: asked.iter().map(|way| count(way)).fold(0, u64::saturating_add),
            output: count(answered),
            cached: count(cached),
            recalled: count(recalled),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_family_counts_in_its_own_words() {
        for (route, usage) in [
            (Route::Chat, json!({"prompt_eval_count": 9, "eval_count": 4})),
            (Route::ChatCompletions, json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13})),
            (Route::Messages, json!({"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": null})),
        ] {
            assert_eq!(Tokens::of(route, &usage), Tokens { input: 9, output: 4, ..Tokens::default() }, "{usage}");
        }
    }

    #[test]
    fn a_cache_is_part_of_the_question() {
        let usage = json!({"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4,
                           "output_tokens": 8});
        assert_eq!(Tokens::of(Route::Messages, &usage), Tokens { input: 7, output: 8, cached: 2, recalled: 4 });
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 4}});
        assert_eq!(Tokens::of(Route::ChatCompletions, &usage), Tokens { input: 7, output: 8, cached: 0, recalled: 4 });
    }

    #[test]
    fn what_is_no_count_counts_nothing() {
        for usage in [json!(null), json!({}), json!({"input_tokens": -3, "output_tokens": "many"})] {
            assert_eq!(Tokens::of(Route::Messages, &usage), Tokens::default(), "{usage}");
        }
    }
}
