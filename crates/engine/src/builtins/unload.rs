//! `unload`: the models of the agent that is left give their memory back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatehook_events::Input;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::Arguments;
use crate::client::Client;
use crate::handler::{DefinitionError, Handler, HookCall, Reply, Run};
use crate::handlers::stopped;

/// The provider whose server holds models in memory until it is told, or some time has passed.
const PROVIDER: &str = "dmr";

/// How long one model may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Models of one agent.
const MODELS: usize = 64;

struct Unload(Client);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("unload")?;
    Ok(Arc::new(Unload(Client::new(arguments.reach()))))
}

impl Handler for Unload {
    /// One after another; what goes wrong is nobody's concern but the log's.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            for (url, model) in models(call.input) {
                let deadline = call.deadline.min(Instant::now() + PATIENCE);
                tokio::select! {
                    biased;
                    _ = stopped(call.cancel, deadline) => tracing::debug!(model, "unload: it took too long"),
                    () = self.unload(url, &model) => {}
                }
            }
            Ok(Reply::Direct(None))
        })
    }
}

impl Unload {
    async fn unload(&self, url: http::Uri, model: &str) {
        let mut request = Request::new(Bytes::from(json!({"model": model}).to_string()).into());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.0.send(request).await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => tracing::debug!(model, status = response.status().as_u16(), "unload: it was refused"),
            Err(error) => tracing::debug!(model, %error, "unload: it did not arrive"),
        }
    }
}

/// Which models to unload, and where.
fn models(input: &Input) -> Vec<(http::Uri, String)> {
    let from = input.from_agent.as_deref().unwrap_or_default();
    if from.is_empty() || Some(from) == input.to_agent.as_deref() {
        return Vec::new();
    }
    let models = input.from_agent_models.as_ref().and_then(Value::as_array).into_iter().flatten();
    let known = models.filter_map(|model| {
        let field = |name: &str| model.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let url = address(field("base_url").unwrap_or_default(), field("unload_api"))?;
        (field("provider")? == PROVIDER).then_some((url, field("model")?.to_owned()))
    });
    known.take(MODELS).collect()
}

/// `unload_api` by itself or on the host of `base`; without one, `_unload` in the place of the `/v1` that `base` ends in.
fn address(base: &str, unload_api: Option<&str>) -> Option<http::Uri> {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = match unload_api.map(|api| (api, Url::parse(api))) {
        Some((_, Ok(whole))) => whole,
        Some((path, Err(_))) => {
            let path = path.trim_start_matches('/');
            Url::parse(base).ok()?.join(&format!("/{path}")).ok()?
        }
        None => {
            let mut url = Url::parse(base).ok()?;
            let path = url.path().trim_end_matches('/');
            let path = format!("{}/_unload", path.strip_suffix("/v1").unwrap_or(path));
            url.set_path(&path);
            url.set_query(None);
            url
        }
    };
    Some(url).filter(is_web)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use gatehook_events::Event;
    use serde_json::json;

    use super::super::tests::{Listener, verdict};
    use super::*;

    #[test]
    fn a_model_is_unloaded_where_its_server_says() {
        for (base, api, url) in [
            ("http://h:1/engines/v1", None, Some("http://h:1/engines/_unload")),
            ("http://h:1/engines/v1/", None, Some("http://h:1/engines/_unload")),
            ("http://h:1", None, Some("http://h:1/_unload")),
            ("http://h:1/engines/v1", Some("/custom/x"), Some("http://h:1/custom/x")),
            ("http://h:1/engines/v1", Some("custom"), Some("http://h:1/custom")),
            ("http://h:1/v1", Some("https://other/x"), Some("https://other/x")),
            ("http://h:1/v1", Some("file:///x"), None),
            ("nonsense", None, None),
            ("", Some("/x"), None),
        ] {
            let found = address(base, api).map(|url| url.to_string());
            assert_eq!(found.as_deref(), url, "{base} {api:?}");
        }
    }

    #[test]
    fn an_agent_that_stays_or_has_no_such_models_unloads_nothing() {
        let model = |provider: &str| json!([{"provider": provider, "model": "m", "base_url": "http://h/v1"}]);
        for (from, to, provider, count) in
            [("a", "b", "dmr", 1), ("a", "a", "dmr", 0), ("", "b", "dmr", 0), ("a", "b", "openai", 0)]
        {
            let fields = json!({"from_agent": from, "to_agent": to, "from_agent_models": model(provider)});
            let input: Input = serde_json::from_value(fields).unwrap();
            assert_eq!(models(&input).len(), count, "{from} {to} {provider}");
        }
    }

    #[tokio::test]
    async fn the_server_is_told_which_model() {
        let listener = Listener::start("200 OK");
        let model = json!({"provider": "dmr", "model": "ai/q", "base_url": listener.url("/engines/v1")});
        let input = json!({"from_agent": "a", "to_agent": "b", "from_agent_models": [model]});
        verdict(Event::OnAgentSwitch, "unload", &[], input).await;
        let request = listener.request();
        assert!(request.starts_with("POST /engines/_unload ") && request.ends_with(r#"{"model":"ai/q"}"#), "{request}");
    }
}
