//! The models that judge for `type: model` hooks and those of agents: where they are, and what they cost. Those that judge
//! are asked here, directly, and no hook looks at that.
//!
//! [`question`] knows the three wire formats that are spoken, [`settings`] how a file says all this.

mod question;
pub(crate) mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use gatehook_engine::client::{BodyError, Client, ClientError, Reach, RequestBody};
use gatehook_engine::events::{FailureKind, TokenUsage};
use gatehook_engine::handlers::model::{Asking, ModelClient, ModelReply, ResponseSchema};
use gatehook_engine::{HandlerError, config::did_you_mean};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use hyper::body::Bytes;
use serde_json::{Map, Value};

use crate::config::UpstreamKind;
use crate::state::via;
use crate::upstream::Pattern;

/// Bytes of an answer.
const REPLY_LIMIT: usize = 1 << 20;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What is known of the models of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// As hooks name it, `provider/name`; `*` stands for anything.
    pub name: String,
    /// Where it is; without it, where its provider is.
    pub place: Option<ModelPlace>,
    /// What it costs.
    pub prices: Option<Prices>,
    /// How an agent asks it.
    pub habits: Habits,
}

/// How an agent asks a model. What is absent is said by another entry that fits, or by nobody.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Habits {
    /// Tokens that question and answer may have together.
    pub window: Option<u64>,
    /// Tokens that an answer may have.
    pub max_tokens: Option<u32>,
    /// Further members of a question, as `temperature`.
    pub options: Option<Map<String, Value>>,
}

/// Where a model is.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelPlace {
    /// What it speaks; without it, what its provider does.
    pub kind: Option<UpstreamKind>,
    /// The address before `/v1/…` or `/api/…`; without it, its provider's.
    pub base_url: Option<Uri>,
    /// The credential as it is, without a scheme. Its `Debug` must not show it: it is marked as sensitive.
    pub api_key: Option<HeaderValue>,
}

/// Prices per million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Of the question.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
}

impl Prices {
    fn cost(self, usage: TokenUsage) -> f64 {
        (usage.input_tokens as f64 * self.input + usage.output_tokens as f64 * self.output) / 1e6
    }
}

/// A provider that needs no configuration: its name, what it speaks, where it is, and the variable with its key.
pub const PROVIDERS: &[(&str, UpstreamKind, &str, &str)] = &[
    ("ollama", UpstreamKind::Ollama, "http://127.0.0.1:11434", ""),
    ("openai", UpstreamKind::OpenAi, "https://api.openai.com", "OPENAI_API_KEY"),
    ("anthropic", UpstreamKind::Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
];

/// Asks the models that files and environment name.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
///
/// use gatehook_engine::{ModelClient, Registry};
/// use gatehook_gateway::Models;
///
/// let env = BTreeMap::from([("OPENAI_API_KEY".to_owned(), "sk-…".to_owned())]);
/// let models = Models::new(Vec::new(), &BTreeMap::new());
/// assert!(models.check("ollama/llama3").is_ok());
/// assert!(models.check("openai/gpt-5-mini").is_err(), "it has no key");
/// Registry::with_defaults().register_model_client(Arc::new(models));
/// ```
pub struct Models {
    /// The most specific first.
    known: Vec<(Pattern, ModelConfig)>,
    /// Keys of providers from the environment.
    keys: BTreeMap<&'static str, HeaderValue>,
    client: Client,
}

/// A model that can be asked.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    /// What its server speaks.
    pub kind: UpstreamKind,
    /// Its name for its server.
    pub name: &'a str,
    /// Where its questions go, path included.
    pub url: Uri,
    /// What it costs.
    pub prices: Option<Prices>,
    /// How an agent asks it.
    pub habits: Habits,
    api_key: Option<HeaderValue>,
}

impl Target<'_> {
    /// What its server wants to be told besides: version and credential.
    pub fn headers(&self) -> HeaderMap {
        question::headers(self.kind, self.api_key.as_ref()).into_iter().collect()
    }
}

impl Models {
    /// The models of a configuration; of several that fit a name the longest pattern is heard first. Keys of the
    /// [`PROVIDERS`] are looked for in `env`.
    pub fn new(mut known: Vec<ModelConfig>, env: &BTreeMap<String, String>) -> Self {
        known.sort_by_key(|model| (model.name.contains('*'), std::cmp::Reverse(model.name.len())));
        let key = |variable: &'static str| {
            let key = env.get(variable).map(|key| key.trim()).filter(|key| !key.is_empty())?;
            Some((variable, settings::api_key(key)?))
        };
        Self {
            known: known.into_iter().map(|model| (Pattern::new(&model.name), model)).collect(),
            keys: PROVIDERS.iter().filter_map(|(.., variable)| key(variable)).collect(),
            client: Client::new(Reach::Any),
        }
    }

    /// Where a model is, by a name as in `ollama/llama3`; else why nobody knows, in words for a person.
    pub fn target<'a>(&self, model: &'a str) -> Result<Target<'a>, String> {
        let named = model.split_once('/').filter(|(provider, name)| !provider.is_empty() && !name.is_empty());
        let (provider, name) = named.ok_or_else(|| format!("`{model}` names no provider, as in `ollama/llama3`"))?;
        let place = self.fitting(model).find_map(|config| config.place.as_ref());
        let provider_of = |name: &str| PROVIDERS.iter().find(|(known, ..)| *known == name);
        let known = provider_of(provider);
        let kind = place.and_then(|place| place.kind).or(known.map(|(_, kind, ..)| *kind)).ok_or_else(|| {
            let names = PROVIDERS.iter().map(|(name, ..)| *name);
            let help = did_you_mean(provider, names).unwrap_or("say its `kind` and `base_url` in `models`".to_owned());
            format!("there is no provider `{provider}`: {help}")
        })?;
        let own_url = place.and_then(|place| place.base_url.clone());
        let default = known.filter(|(_, its, ..)| own_url.is_none() && *its == kind);
        let base = match (own_url, default) {
            (Some(url), _) => url,
            (None, Some((_, _, url, _))) => Uri::from_static(url),
            (None, None) => return Err(format!("`{model}` has a `kind` of its own and needs a `base_url` too")),
        };
        let mut api_key = place.and_then(|place| place.api_key.clone());
        // A key of the environment goes to its provider and to nobody else.
        if let (None, Some((_, _, _, variable))) = (&api_key, default.filter(|(.., variable)| !variable.is_empty())) {
            let missing = || format!("`{model}` needs a key: set {variable}, or `api_key` in `models`");
            api_key = Some(self.keys.get(variable).cloned().ok_or_else(missing)?);
        }
        let url = question::url(kind, &base).ok_or_else(|| format!("`{model}` has no usable `base_url`"))?;
        Ok(Target { kind, name, url, prices: self.prices(model), habits: self.habits(model), api_key })
    }

    /// What files say of a name, the most specific first.
    fn fitting(&self, model: &str) -> impl Iterator<Item = &ModelConfig> + Clone {
        self.known.iter().filter(move |(pattern, _)| pattern.fits(model)).map(|(_, config)| config)
    }

    /// What a model costs, wherever it is.
    pub fn prices(&self, model: &str) -> Option<Prices> {
        self.fitting(model).find_map(|config| config.prices)
    }

    /// How an agent asks it, wherever it is.
    pub fn habits(&self, model: &str) -> Habits {
        let mut fitting = self.fitting(model).map(|config| &config.habits);
        Habits {
            window: fitting.clone().find_map(|habits| habits.window),
            max_tokens: fitting.clone().find_map(|habits| habits.max_tokens),
            options: fitting.find_map(|habits| habits.options.clone()),
        }
    }

    async fn reply(
        &self,
        model: &str,
        system: &str,
        user: &str,
        schema: Option<&ResponseSchema>,
    ) -> Result<ModelReply, HandlerError> {
        let target = self.target(model).map_err(|message| HandlerError::new(FailureKind::HandlerError, message))?;
        let host = target.url.host().unwrap_or_default().to_owned();
        let failure = |kind, cause: &str| HandlerError::new(kind, format!("{host}: {cause}"));
        let body = question::body(target.kind, target.name, system, user, schema);
        let response = self.client.send(request(&target, body)).await.map_err(|error| {
            let kind = match error {
                ClientError::Forbidden { .. } => FailureKind::ForbiddenAddress,
                _ => FailureKind::Unreachable,
            };
            HandlerError::new(kind, error.to_string())
        })?;
        let status = response.status();
        if status.is_redirection() {
            return Err(failure(FailureKind::Redirected, &format!("it redirects ({})", status.as_u16())));
        }
        if !status.is_success() {
            return Err(failure(FailureKind::BadStatus, &format!("it answered {}", status.as_u16())));
        }
        let body = response.into_body().collect_within(REPLY_LIMIT).await.map_err(|error| match error {
            BodyError::TooLarge { .. } => failure(FailureKind::OutputTooLarge, "its answer is over 1 MiB"),
            BodyError::Broken(_) => failure(FailureKind::Unreachable, "it broke off in its answer"),
        })?;
        let (text, usage) = question::answer(target.kind, body, schema)
            .map_err(|error| failure(FailureKind::MalformedJson, &format!("its answer cannot be read: {error}")))?;
        let cost = target.prices.zip(usage).map(|(prices, usage)| prices.cost(usage));
        Ok(ModelReply { text, usage, cost })
    }
}

impl ModelClient for Models {
    /// Cancel safe: dropped at any point, it closes its connection.
    fn ask<'a>(
        &'a self,
        model: &'a str,
        system: &'a str,
        user: &'a str,
        schema: Option<&'a ResponseSchema>,
    ) -> Asking<'a> {
        Box::pin(self.reply(model, system, user, schema))
    }

    fn check(&self, model: &str) -> Result<(), String> {
        self.target(model).map(drop)
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.known.iter().map(|(_, config)| config)).finish()
    }
}

fn request(target: &Target<'_>, body: Bytes) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target.url.clone();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("gatehook/", env!("CARGO_PKG_VERSION"))));
    // A judge behind this very gateway would be judged by itself; so it is refused as a loop.
    headers.insert(VIA, via().clone());
    headers.extend(question::headers(target.kind, target.api_key.as_ref()));
    request
}

/// A question and its answer on the wire, for fuzz targets.
#[cfg(fuzzing)]
pub mod wire {
    use super::{Bytes, ResponseSchema, TokenUsage, UpstreamKind, Uri, question};

    /// Where a question goes, if it can go anywhere.
    pub fn url(kind: UpstreamKind, base: &Uri) -> Option<Uri> {
        question::url(kind, base)
    }

    /// A question.
    pub fn body(kind: UpstreamKind, words: [&str; 3], schema: Option<&ResponseSchema>) -> Bytes {
        let [model, system, user] = words;
        question::body(kind, model, system, user, schema)
    }

    /// The text of an answer, and the tokens it took; `None` where it cannot be read.
    pub fn answer(
        kind: UpstreamKind,
        body: Bytes,
        schema: Option<&ResponseSchema>,
    ) -> Option<(String, Option<TokenUsage>)> {
        question::answer(kind, body, schema).ok()
    }
}

/// Header names and values.
type Headers = Vec<(HeaderName, HeaderValue)>;
