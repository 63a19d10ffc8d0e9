//! What servers speak, and what they charge.

use gatehook_inference::{Route, Tokens, Wire};

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `/api/chat`: <https://docs.ollama.com/api/chat>.
    Ollama,
    /// `/v1/chat/completions`, of OpenAI and what is compatible:
    /// <https://platform.openai.com/docs/api-reference/chat>.
    OpenAi,
    /// `/v1/messages`: <https://docs.anthropic.com/en/api/messages>.
    Anthropic,
}

impl Format {
    /// The route of its questions.
    pub fn route(self) -> Route {
        match self {
            Self::Ollama => Route::Chat,
            Self::OpenAi => Route::ChatCompletions,
            Self::Anthropic => Route::Messages,
        }
    }
}

/// Prices per million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Of the question.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
}

/// What tokens of a cache cost, as a part of the question's price: written, read
/// (<https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching>). Others differ from model to model and are
/// not known; there the full price is an upper bound.
const CACHE: &[(Wire, f64, f64)] = &[(Wire::Anthropic, 1.25, 0.1)];

impl Prices {
    pub(super) fn cost(self, route: Route, tokens: Tokens) -> f64 {
        let cache = CACHE.iter().find(|(wire, ..)| *wire == route.wire());
        let (written, read) = cache.map_or((1.0, 1.0), |(_, written, read)| (*written, *read));
        let plain = tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.recalled);
        let input = plain as f64 + tokens.cached as f64 * written + tokens.recalled as f64 * read;
        (input * self.input + tokens.output as f64 * self.output) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_per_million_tokens_and_a_cache_is_cheaper() {
        let prices = Prices { input: 2.0, output: 10.0 };
        let tokens = Tokens { input: 3_000_000, output: 500_000, cached: 1_000_000, recalled: 1_000_000 };
        assert_eq!(prices.cost(Route::Chat, tokens), 11.0);
        assert_eq!(prices.cost(Route::Messages, tokens), 2.0 + 2.5 + 0.2 + 5.0);
    }
}
