//! The paths whose bodies hold text for a model, and the wire each speaks.

/// The family of a path: it decides what an error looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `{"error": "…"}` (<https://github.com/ollama/ollama/blob/main/docs/api.md>).
    Ollama,
    /// `{"error": {"message", "type", "param", "code"}}` (<https://platform.openai.com/docs/guides/error-codes>).
    OpenAi,
    /// `{"type": "error", "error": {"type", "message"}}` (<https://docs.anthropic.com/en/api/errors>).
    Anthropic,
}

macro_rules! paths {
    ($(#[$doc:meta])* $name:ident { $( $(#[$each:meta])* $variant:ident = $path:literal, $wire:ident; )+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$each])* $variant, )+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )+];

            /// As in `/v1/messages`.
            pub fn path(self) -> &'static str {
                match self { $( Self::$variant => $path, )+ }
            }

            /// The one of exactly this path (no query, already normalised).
            pub fn from_path(path: &str) -> Option<Self> {
                match path { $( $path => Some(Self::$variant), )+ _ => None }
            }

            /// Which family of bodies and errors it speaks.
            pub fn wire(self) -> Wire {
                match self { $( Self::$variant => Wire::$wire, )+ }
            }
        }
    };
}

paths! {
    /// A route of inference: hooks see what goes in and what comes out.
    Route {
        /// Native chat.
        Chat = "/api/chat", Ollama;
        /// Native completion.
        Generate = "/api/generate", Ollama;
        /// OpenAI chat completions.
        ChatCompletions = "/v1/chat/completions", OpenAi;
        /// OpenAI completions (legacy).
        Completions = "/v1/completions", OpenAi;
        /// OpenAI Responses.
        Responses = "/v1/responses", OpenAi;
        /// Anthropic Messages.
        Messages = "/v1/messages", Anthropic;
    }
}

paths! {
    /// A path that takes text and answers with none: hooks see what goes in.
    TextRoute {
        /// Native embeddings: `input`.
        Embed = "/api/embed", Ollama;
        /// Native embeddings (legacy): `prompt`.
        Embeddings = "/api/embeddings", Ollama;
        /// OpenAI embeddings: `input`.
        OpenAiEmbeddings = "/v1/embeddings", OpenAi;
        /// Anthropic token count: the body of `/v1/messages`.
        CountTokens = "/v1/messages/count_tokens", Anthropic;
    }
}

impl Route {
    /// Whether a request that does not say so is answered with a stream: the native routes do.
    pub fn streams_by_default(self) -> bool {
        self.wire() == Wire::Ollama
    }
}

/// Any path whose request body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Path {
    /// A route of inference.
    Route(Route),
    /// A path that only takes text.
    Text(TextRoute),
}

impl Path {
    /// As in `/v1/messages`.
    pub fn as_str(self) -> &'static str {
        match self {
            Path::Route(route) => route.path(),
            Path::Text(route) => route.path(),
        }
    }

    /// The one of exactly this path, if its body is read at all.
    pub fn from_path(path: &str) -> Option<Self> {
        Route::from_path(path).map(Path::Route).or_else(|| TextRoute::from_path(path).map(Path::Text))
    }

    /// Which family of bodies and errors it speaks.
    pub fn wire(self) -> Wire {
        match self {
            Path::Route(route) => route.wire(),
            Path::Text(route) => route.wire(),
        }
    }
}

impl From<Route> for Path {
    fn from(route: Route) -> Self {
        Path::Route(route)
    }
}

impl From<TextRoute> for Path {
    fn from(route: TextRoute) -> Self {
        Path::Text(route)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_found_by_its_name_and_by_nothing_else() {
        for route in Route::ALL {
            assert_eq!(Path::from_path(route.path()), Some(Path::Route(*route)));
            assert_eq!(Path::from_path(&format!("{}/", route.path())), None);
        }
        for route in TextRoute::ALL {
            assert_eq!(Path::from_path(route.path()), Some(Path::Text(*route)));
        }
    }
}
