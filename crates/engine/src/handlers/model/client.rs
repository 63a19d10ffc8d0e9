use std::future::Future;
use std::pin::Pin;

use gatehook_events::TokenUsage;
use serde_json::Value;

use crate::handler::HandlerError;

/// The future of one question.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<ModelReply, HandlerError>> + Send + 'a>>;

/// Asks models for `type: model` hooks. It sees to credentials, addresses and prices; the engine makes the question and
/// reads the answer.
///
/// ```
/// use std::sync::Arc;
///
/// use gatehook_engine::config::{self, Format, ReadOptions};
/// use gatehook_engine::events::{Decision, Event, Input};
/// use gatehook_engine::handlers::model::{Asking, ModelClient, ModelReply, ResponseSchema};
/// use gatehook_engine::{Executor, HandlerEnv, Registry};
/// use tokio_util::sync::CancellationToken;
///
/// /// A model that knows one danger.
/// struct Cautious;
///
/// impl ModelClient for Cautious {
///     fn ask<'a>(
///         &'a self,
///         _model: &'a str,
///         _system: &'a str,
///         user: &'a str,
///         _schema: Option<&'a ResponseSchema>,
///     ) -> Asking<'a> {
///         let decision = if user.contains("rm -rf") { "deny" } else { "allow" };
///         let reply = format!(r#"{{"decision": "{decision}", "reason": "I have looked"}}"#);
///         Box::pin(async { Ok(ModelReply::new(reply)) })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"
/// hooks:
///   pre_tool_use:
///     matcher: shell
///     hooks:
///       type: model
///       model: cautious/1
///       prompt: "May this run? {{ toJSON .ToolInput }}"
///       schema: pre_tool_use_decision
/// "#;
/// let file = config::parse("policy.yaml", text, Format::Yaml, &ReadOptions::default())?;
/// let registry = Registry::with_defaults();
/// registry.register_model_client(Arc::new(Cautious));
/// let executor = Executor::with_registry(file.hooks, HandlerEnv::current()?, &registry)?;
///
/// let input: Input = serde_json::from_str(r#"{"tool_name": "shell", "tool_input": {"cmd": "rm -rf /"}}"#)?;
/// let verdict = executor.dispatch(Event::PreToolUse, &input, &CancellationToken::new()).await;
/// assert_eq!((verdict.allowed, verdict.decision), (false, Some(Decision::Deny)));
/// assert_eq!(verdict.message, "I have looked");
/// # Ok(())
/// # }
/// ```
pub trait ModelClient: Send + Sync {
    /// Asks `model`, as in `provider/name`, with a system message and one of the user; with a schema, for one JSON object
    /// of it.
    ///
    /// The hook's deadline and a cancellation drop the future, which must leave nothing behind. An error is the hook's
    /// failure.
    fn ask<'a>(
        &'a self,
        model: &'a str,
        system: &'a str,
        user: &'a str,
        schema: Option<&'a ResponseSchema>,
    ) -> Asking<'a>;

    /// Whether `model` can be asked at all, else why not: found out at load. Asks nobody.
    fn check(&self, model: &str) -> Result<(), String> {
        let _ = model;
        Ok(())
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelReply {
    /// Its text.
    pub text: String,
    /// The tokens of question and answer, where the server counts them.
    pub usage: Option<TokenUsage>,
    /// What it cost; `None` where nobody knows the price, 0 where it is free.
    pub cost: Option<f64>,
}

impl ModelReply {
    /// A text of unknown price.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// The form that a reply is asked for in.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseSchema {
    /// The name under which it was registered.
    pub name: String,
    /// A JSON Schema.
    pub schema: Value,
}
