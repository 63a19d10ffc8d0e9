//! What `serve` is told, from the weakest to the strongest: built-in defaults, the managed and the user's files,
//! `--config`, the environment, flags.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gatehook_engine::Executor;
use gatehook_events::Profile;
use gatehook_gateway::config::{Config, UpstreamConfig, UpstreamKind as Kind};
use gatehook_guard::Guard;

use crate::args::{ServeArgs, UpstreamKind};
use crate::commands::serve::ollama_host;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::places::{self, Place};
use crate::policy::{Policy, PolicyError, Reading};
use crate::recording::Recording;

/// Where a gateway's configuration comes from; it can be read again.
pub(crate) struct Sources<'a> {
    args: &'a ServeArgs,
    env: BTreeMap<String, String>,
    /// The file that was named.
    file: Option<PathBuf>,
    listen: Option<SocketAddr>,
    /// What is remembered of dispatches, over all reloads.
    recording: RefCell<Recording>,
}

/// A configuration ready to serve.
pub(crate) struct Serving {
    pub(crate) config: Config,
    pub(crate) executor: Executor,
    /// What somebody should know who believes that all of every file is in force.
    pub(crate) notes: Vec<String>,
    /// Why nothing is remembered although it should be.
    pub(crate) unrecorded: Option<String>,
}

impl<'a> Sources<'a> {
    /// What the command line and the environment say; a variable that is empty says nothing.
    pub(crate) fn new(args: &'a ServeArgs, env: BTreeMap<String, String>) -> Result<Self, Failure> {
        let set = |name: &str| env.get(name).filter(|value| !value.is_empty());
        let file = args.config.clone().or_else(|| set("GATEHOOK_CONFIG").map(PathBuf::from));
        let listen = match (args.listen, set("GATEHOOK_LISTEN")) {
            (None, Some(text)) => Some(text.parse().map_err(|_| {
                let help = "write it as in `127.0.0.1:11435`".to_owned();
                Failure::new(Exit::Configuration, format!("GATEHOOK_LISTEN: `{text}` is no address"), Some(help))
            })?),
            (flag, _) => flag,
        };
        Ok(Self { args, env, file, listen, recording: RefCell::default() })
    }

    /// The files, weakest first. None is taken from the folder that `serve` happens to be started in.
    pub(crate) fn places(&self) -> Vec<Place> {
        places::usual_places(&self.env, self.file.as_deref(), None)
    }

    /// What is looked at to see whether the configuration has changed.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        places::watched(&self.env, self.file.as_deref())
    }

    /// Reads everything, or says all that is wrong with it.
    pub(crate) fn read(&self) -> Result<Serving, PolicyError> {
        let reading = Reading {
            env: &self.env,
            profile: Profile::Native,
            places: self.places(),
            project: None,
            environment: true,
            agents: false,
        };
        let policy = reading.policy()?;
        let mut recording = self.recording.borrow_mut();
        let executor = recording.of_wire(policy.executor(&self.env)?, policy.traces(), &self.env);
        let mut config = self.config(&policy);
        config.guard = Guard::new(executor.clone()).map(Into::into);
        Ok(Serving { config, executor, notes: policy.notes().to_vec(), unrecorded: recording.problem() })
    }

    /// Writes what is to be remembered and waits, within `grace`.
    pub(crate) fn drain(&self, grace: Duration) {
        if let Some(lost) = self.recording.borrow().drain(grace) {
            tracing::warn!("{lost}");
        }
    }

    fn config(&self, policy: &Policy) -> Config {
        let settings = policy.settings().clone();
        let mut config = Config::default();
        let kind = match self.args.upstream_kind {
            UpstreamKind::Ollama => Kind::Ollama,
            UpstreamKind::Openai => Kind::OpenAi,
            UpstreamKind::Anthropic => Kind::Anthropic,
        };
        let from_env = self.env.get("OLLAMA_HOST").filter(|host| !host.is_empty() && !settings.names_upstreams());
        let upstream = self.args.upstream.clone().or_else(|| from_env.map(|host| ollama_host(host)));
        settings.apply(&mut config);
        if let Some(url) = upstream {
            config.upstreams = vec![UpstreamConfig::new("default", kind, url)];
        }
        if let Some(address) = self.listen {
            config.listen.address = address;
        }
        if let Some(workers) = self.args.workers {
            config.workers = workers;
        }
        let origins = self.env.get("OLLAMA_ORIGINS").map(String::as_str).unwrap_or_default();
        let origins = origins.split(',').map(str::trim).filter(|origin| !origin.is_empty());
        config.listen.origins.extend(origins.map(str::to_owned));
        policy.lock(&mut config);
        config
    }
}
