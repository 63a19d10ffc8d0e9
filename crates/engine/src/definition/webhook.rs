//! A webhook as it was configured: where it is, and how it is spoken to.

use std::fmt;

use serde_json::{Map, Value};

/// An HTTP request for each event. Its `Debug` shows neither the address nor the values of headers nor secrets.
#[derive(Clone, PartialEq)]
pub struct WebhookDefinition {
    /// Where to; user information in it is never logged. Without a path it gets the contract's own.
    pub url: String,
    /// `POST` by default.
    pub method: String,
    /// Extra headers, in order, values resolved.
    pub headers: Vec<(String, String)>,
    /// The shape of request and reply.
    pub contract: Contract,
    /// What the contract's requests say besides the event, as in `project_id`.
    pub parameters: Map<String, Value>,
    /// Request and reply of [`Contract::Mapped`].
    pub mapping: Option<Box<Mapping>>,
    /// The keys that requests are signed with, as in `whsec_…`: the current one, and old ones while it is replaced.
    pub secrets: Vec<String>,
}

impl WebhookDefinition {
    /// A webhook that leaves all else to its contract.
    pub fn new(url: impl Into<String>, contract: Contract) -> Self {
        Self {
            url: url.into(),
            method: String::new(),
            headers: Vec::new(),
            contract,
            parameters: Map::new(),
            mapping: None,
            secrets: Vec::new(),
        }
    }
}

impl fmt::Debug for WebhookDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("WebhookDefinition")
            .field("method", &self.method)
            .field("headers", &headers)
            .field("contract", &self.contract)
            .field("parameters", &self.parameters)
            .field("mapping", &self.mapping)
            .finish_non_exhaustive()
    }
}

/// The shape of a webhook's request and reply. [`CONTRACTS`](crate::handlers::webhook::CONTRACTS) says what each is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contract {
    /// The payload as it is; the reply as a command hook would print it.
    #[default]
    Native,
    /// The Ollama inference webhooks.
    Ollama,
    /// The guardrail webhooks of agentgateway, kgateway and Gloo.
    AgentGateway,
    /// LiteLLM's generic guardrail API.
    LiteLlm,
    /// Portkey's webhook guardrails.
    Portkey,
    /// Lakera Guard, version 2.
    Lakera,
    /// The checks of a NeMo Guardrails server.
    Nemo,
    /// The API server of LLM Guard.
    LlmGuard,
    /// OpenAI's moderation endpoint.
    OpenAiModeration,
    /// Anthropic's inference hooks.
    AnthropicInference,
    /// As the configuration says.
    Mapped,
}

impl Contract {
    /// All contracts by their names in configuration.
    pub const ALL: [(&'static str, Contract); 11] = [
        ("native", Contract::Native),
        ("ollama", Contract::Ollama),
        ("agentgateway", Contract::AgentGateway),
        ("litellm", Contract::LiteLlm),
        ("portkey", Contract::Portkey),
        ("lakera", Contract::Lakera),
        ("nemo", Contract::Nemo),
        ("llm-guard", Contract::LlmGuard),
        ("openai-moderation", Contract::OpenAiModeration),
        ("anthropic-inference", Contract::AnthropicInference),
        ("mapped", Contract::Mapped),
    ];

    /// The name in configuration, as in `llm-guard`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, contract)| *contract == self).map_or("", |(name, _)| name)
    }
}

/// A contract that the configuration spells out.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// The request's body; its strings are templates.
    pub body: Value,
    /// What the reply means.
    pub reply: ReplyRules,
}

/// What a reply means. A block goes before an ask, and that before an allow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplyRules {
    /// Statuses of HTTP that block, whatever the body is.
    pub block_status: Vec<u16>,
    /// It blocks where one of these holds.
    pub block_when: Vec<Rule>,
    /// A person decides where one of these holds.
    pub ask_when: Vec<Rule>,
    /// Where there are any, one of these must hold, else the hook has failed.
    pub allow_when: Vec<Rule>,
    /// The place of the reason.
    pub reason: Option<String>,
    /// Where rewritten text stands.
    pub rewrite: Option<RewriteFrom>,
}

/// Where rewritten text stands in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewriteFrom {
    /// At this place, in the place of `{{ .text }}`.
    Text(String),
    /// In a list at this place, in the places of `{{ .texts }}`.
    Texts(String),
}

/// A condition on a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// A JSON pointer (RFC 6901), in which `*` stands for every item of a list.
    pub path: String,
    /// A place that is missing does not hold. Otherwise it makes the reply unreadable.
    pub optional: bool,
    /// What is asked of the value there.
    pub test: Test,
}

/// What is asked of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// It is this boolean, number or text.
    Is(Value),
    /// It is one of these.
    In(Vec<Value>),
    /// It is a number, and not below this one.
    AtLeast(f64),
    /// It is text that fits this pattern as a whole.
    Matches(String),
    /// It is there and not null, or is not.
    Exists(bool),
}
