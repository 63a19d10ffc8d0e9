//! A gateway before one server, with the webhooks that `OLLAMA_HOOK_…` variables name: `proxy LISTEN UPSTREAM [WORKERS]`,
//! until it is interrupted.

use std::error::Error;
use std::time::Duration;

use gatehook_engine::config::ollama_env;
use gatehook_engine::{Executor, HandlerEnv};
use gatehook_gateway::config::{UpstreamConfig, UpstreamKind};
use gatehook_gateway::{Config, Gateway};
use gatehook_guard::Guard;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (listen, upstream) = (args.next().ok_or("LISTEN?")?, args.next().ok_or("UPSTREAM?")?);
    let env = HandlerEnv::current()?;
    let guard = match ollama_env(&env.env)? {
        Some(hooks) => Guard::new(Executor::new(hooks, env)?),
        None => None,
    };
    let mut config = Config {
        guard: guard.map(Into::into),
        upstreams: vec![UpstreamConfig::new("upstream", UpstreamKind::Ollama, upstream)],
        workers: args.next().map_or(Ok(0), |workers| workers.parse())?,
        ..Config::default()
    };
    config.listen.address = listen.parse()?;
    let gateway = Gateway::start(config)?;
    tokio::signal::ctrl_c().await?;
    gateway.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
