//! The models of agents: which one is meant, where it is, and what its server is told.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gatehook_agent::model::{Format, Http, Model, Prices, Replay, Server};
use gatehook_agent::team::ModelDefinition;
use gatehook_engine::client::{Client, Reach, RequestBody};
use gatehook_gateway::config::UpstreamKind;
use gatehook_gateway::{Habits, ModelConfig, ModelPlace, Models};
use hyper::body::Bytes;
use hyper::http::HeaderValue;
use hyper::{Request, Uri};
use serde_json::Value;

use crate::commands::serve::ollama_host;
use crate::exit::Exit;
use crate::failure::Failure;

/// The variables that name an agent's model, the stronger first, and what provider a bare name in them means.
const VARIABLES: [(&str, &str); 2] = [("GATEHOOK_MODEL", ""), ("OLLAMA_MODEL", "ollama/")];

/// How long a local Ollama may take to list its models.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of such a list.
const LIST_LIMIT: usize = 4 << 20;

/// What a model without a name of its own can be.
const HELP: &str = "name one: `--model provider/name`, the variable GATEHOOK_MODEL, or `agent: {model: provider/name}` in the \
configuration; a local Ollama needs `ollama pull` first";

/// The models that files and environment know, for hooks and agents alike. `OLLAMA_HOST` says where Ollama is, unless a
/// file does.
pub(crate) fn known(mut models: Vec<ModelConfig>, env: &BTreeMap<String, String>) -> Models {
    let host = env.get("OLLAMA_HOST").filter(|host| !host.trim().is_empty());
    let base_url = host.and_then(|host| ollama_host(host).parse().ok());
    models.extend(base_url.map(|url| ModelConfig {
        name: "ollama/*".to_owned(),
        place: Some(ModelPlace { kind: None, base_url: Some(url), api_key: None }),
        prices: None,
        habits: Habits::default(),
    }));
    Models::new(models, env)
}

/// What docker-agent's file says of a model.
pub(crate) fn defined(model: &ModelDefinition, env: &BTreeMap<String, String>) -> ModelConfig {
    let base_url = model.base_url.as_deref().and_then(|url| url.parse().ok());
    let key = model.token_key.as_ref().and_then(|variable| env.get(variable));
    let api_key = key.and_then(|key| HeaderValue::from_str(key.trim()).ok()).map(|mut key| {
        key.set_sensitive(true);
        key
    });
    ModelConfig {
        name: model.id.to_string(),
        place: (base_url.is_some() || api_key.is_some()).then_some(ModelPlace { kind: None, base_url, api_key }),
        prices: model.prices.map(|(input, output)| gatehook_gateway::Prices { input, output }),
        habits: Habits {
            window: model.window,
            max_tokens: None,
            options: Some(model.options.clone()).filter(|options| !options.is_empty()),
        },
    }
}

/// The models that agents can be given.
pub(crate) struct AgentModels<'a> {
    known: Models,
    env: &'a BTreeMap<String, String>,
    client: Client,
    /// The first model of a local Ollama, once it was asked.
    listed: OnceCell<String>,
}

impl<'a> AgentModels<'a> {
    /// Of what files name, the strongest first.
    pub(crate) fn new(configured: Vec<ModelConfig>, env: &'a BTreeMap<String, String>) -> Self {
        Self { known: known(configured, env), env, client: Client::new(Reach::Any), listed: OnceCell::new() }
    }

    /// The model of a name as in `ollama/llama3`.
    pub(crate) fn named(&self, name: &str) -> Result<Model, Failure> {
        let target = self.known.target(name).map_err(|why| Failure::new(Exit::Configuration, why, None))?;
        let server = Server::Http(Http::new(self.client.clone(), target.url.clone(), target.headers()));
        let format = match target.kind {
            UpstreamKind::Ollama => Format::Ollama,
            UpstreamKind::OpenAi => Format::OpenAi,
            UpstreamKind::Anthropic => Format::Anthropic,
        };
        Ok(self.with_habits(Model::new(name, format, server)))
    }

    /// A model whose answers stand in a file.
    pub(crate) fn replayed(&self, file: &Path) -> Result<Model, Failure> {
        let replay = Replay::open(file).map_err(|error| {
            let help = "docs/agent.md says how answers are written".to_owned();
            Failure::new(Exit::Usage, error.to_string(), Some(help))
        })?;
        Ok(self.with_habits(Model::replay(replay)))
    }

    /// The model with what files say of its name.
    fn with_habits(&self, mut model: Model) -> Model {
        let (prices, habits) = (self.known.prices(model.id()), self.known.habits(model.id()));
        model.prices = prices.map(|prices| Prices { input: prices.input, output: prices.output });
        model.max_tokens = habits.max_tokens;
        model.options = habits.options.unwrap_or_default().into();
        model.with_window(habits.window.unwrap_or(0))
    }

    /// The model that is meant: the one that is `said`, else that of the environment, else the `configured` one, else the
    /// first of a local Ollama. Must not be called on a runtime.
    pub(crate) fn meant(&self, said: Option<&str>, configured: Option<&str>) -> Result<Model, Failure> {
        let from_env = VARIABLES.iter().find_map(|(variable, provider)| {
            let name = self.env.get(*variable).map(|name| name.trim()).filter(|name| !name.is_empty())?;
            let is_full = provider.is_empty() || name.starts_with(provider);
            Some(if is_full { name.to_owned() } else { format!("{provider}{name}") })
        });
        match said.map(str::to_owned).or(from_env).or_else(|| configured.map(str::to_owned)) {
            Some(name) => self.named(&name),
            None => {
                let first = match self.listed.get() {
                    Some(first) => first.clone(),
                    None => format!("ollama/{}", self.first_of_ollama()?),
                };
                self.named(self.listed.get_or_init(|| first))
            }
        }
    }

    fn first_of_ollama(&self) -> Result<String, Failure> {
        let target = self.known.target("ollama/any").map_err(|why| Failure::new(Exit::Configuration, why, None))?;
        let host = target.url.authority().map(ToString::to_string).unwrap_or_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listed = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.listed(&target.url)).await });
        let list = listed.ok().flatten().ok_or_else(|| {
            let why = format!("no model is named, and no Ollama answers at {host}");
            Failure::new(Exit::Configuration, why, Some(HELP.to_owned()))
        })?;
        first(&list).ok_or_else(|| {
            let why = format!("no model is named, and the Ollama at {host} has none");
            Failure::new(Exit::Configuration, why, Some(HELP.to_owned()))
        })
    }

    /// What Ollama lists (<https://docs.ollama.com/api/tags>).
    async fn listed(&self, chat: &Uri) -> Option<Value> {
        let url = chat.to_string().replace("/api/chat", "/api/tags");
        let request = Request::get(url).body(RequestBody::from(Bytes::new())).ok()?;
        let response = self.client.send(request).await.ok().filter(|response| response.status().is_success())?;
        serde_json::from_slice(&response.into_body().collect_within(LIST_LIMIT).await.ok()?).ok()
    }
}

/// The model that was used or fetched last, and that speaks.
fn first(list: &Value) -> Option<String> {
    let names = list.get("models")?.as_array()?.iter().filter_map(|model| model.get("name")?.as_str());
    names.filter(|name| !name.contains("embed")).map(str::to_owned).next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_strongest_word_names_the_model() {
        let meant = |said: Option<&str>, variables: &[(&str, &str)], configured: Option<&str>| {
            let env = env(variables);
            AgentModels::new(Vec::new(), &env).meant(said, configured).map(|model| model.id().to_string())
        };
        let both = [("GATEHOOK_MODEL", "ollama/b"), ("OLLAMA_MODEL", "c")];
        assert_eq!(meant(Some("ollama/a"), &both, Some("ollama/d")).unwrap(), "ollama/a");
        assert_eq!(meant(None, &both, Some("ollama/d")).unwrap(), "ollama/b");
        assert_eq!(meant(None, &[("OLLAMA_MODEL", "c:7b")], Some("ollama/d")).unwrap(), "ollama/c:7b");
        assert_eq!(meant(None, &[("OLLAMA_MODEL", "ollama/c")], None).unwrap(), "ollama/c");
        assert_eq!(meant(None, &[("GATEHOOK_MODEL", " ")], Some("ollama/d")).unwrap(), "ollama/d");
        assert!(meant(Some("llama3"), &both, None).unwrap_err().to_string().contains("names no provider"));
    }

    #[test]
    fn without_a_name_and_an_ollama_there_is_a_remedy() {
        let env = env(&[("OLLAMA_HOST", "127.0.0.1:1")]);
        let failure = AgentModels::new(Vec::new(), &env).meant(None, None).unwrap_err();
        assert!(failure.to_string().contains("no Ollama answers at 127.0.0.1:1"), "{failure}");
        assert!(failure.shown(false).contains("--model"), "{}", failure.shown(false));
    }

    #[test]
    fn a_model_is_found_where_the_environment_says_that_ollama_is() {
        let env = env(&[("OLLAMA_HOST", "10.0.0.7")]);
        let model = AgentModels::new(Vec::new(), &env).named("ollama/llama3").unwrap();
        assert!(format!("{model:?}").contains("http://10.0.0.7:11434/api/chat"), "{model:?}");
    }

    #[test]
    fn the_first_model_that_speaks_is_taken() {
        let list = json!({"models": [{"name": "nomic-embed-text:latest"}, {"name": "qwen3:8b"}, {"name": "llama3"}]});
        assert_eq!(first(&list).as_deref(), Some("qwen3:8b"));
        assert_eq!(first(&json!({"models": []})), None);
        assert_eq!(first(&json!([])), None);
    }

    #[test]
    fn a_model_of_docker_agents_file_is_asked_where_that_says() {
        let definition = ModelDefinition {
            id: "openai/qwen".into(),
            base_url: Some("http://127.0.0.1:9/v1".to_owned()),
            token_key: Some("QWEN".to_owned()),
            prices: None,
            window: Some(4096),
            options: json!({"temperature": 0.5}).as_object().cloned().unwrap(),
        };
        let env = env(&[("QWEN", "sk-q"), ("OPENAI_API_KEY", "sk-o")]);
        let model = AgentModels::new(vec![defined(&definition, &env)], &env).named("openai/qwen").unwrap();
        assert!(format!("{model:?}").contains("http://127.0.0.1:9/v1/chat/completions"), "{model:?}");
        assert_eq!((model.window(), &model.options["temperature"]), (4096, &json!(0.5)));
    }
}
