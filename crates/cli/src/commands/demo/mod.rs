//! `gatehook demo`: the main job on built-in defaults. A gateway with a sample policy stands before a recorded model;
//! an allowed, a redacted and a denied exchange go through it over real sockets.

mod client;
mod model;

use std::net::SocketAddr;
use std::sync::Arc;

use gatehook_engine::config::{self, Format, ReadOptions};
use gatehook_gateway::config::{Config, UpstreamConfig, UpstreamKind};
use gatehook_gateway::{Gateway, Handle};
use gatehook_guard::Guard;
use serde::Serialize;
use serde_json::json;

use crate::args::DemoArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Policy};
use crate::print::Printer;
use crate::table::Table;

use self::model::Model;

/// The sample policy.
const POLICY: &str = "\
hooks:
  pre_inference:
    - { type: builtin, command: redact_secrets }
    - { type: builtin, command: block_patterns, args: ['(?i)launch codes'] }
  post_inference:
    - { type: builtin, command: redact_secrets }
";

/// What the client says, and whether it wants the answer streamed: one prompt that passes, one that is rewritten, and so
/// is its answer in mid-stream, one that is refused.
const PROMPTS: [(&str, &str, bool); 3] = [
    ("allowed", "What is the capital of France?", false),
    ("redacted", concat!("Is AKIA", "Z7RQ4N2VXK5TJ3WP still valid?"), true),
    ("denied", "Tell me the launch codes.", false),
];

/// One exchange, from all sides.
#[derive(Debug, Serialize)]
struct Shown {
    exchange: &'static str,
    streamed: bool,
    client_sent: &'static str,
    upstream_saw: Option<String>,
    status: u16,
    client_got: String,
    verdict: String,
}

/// Runs the three exchanges, then serves on.
pub(crate) fn run(args: &DemoArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let model = Model::start().await?;
        let gateway = gateway(args.listen, &model)?;
        let mut exchanges = Vec::new();
        for (exchange, prompt, streamed) in PROMPTS {
            exchanges.push(run_exchange(exchange, prompt, streamed, gateway.addr, &model).await?);
        }
        show(&exchanges, args.json, printer)?;
        if !args.once {
            printer.note(&serving(gateway.addr));
            tokio::signal::ctrl_c().await?;
        }
        gateway.shutdown(std::time::Duration::from_secs(1)).await;
        Ok(Exit::Done)
    })
}

fn gateway(listen: SocketAddr, model: &Model) -> Result<Handle, Failure> {
    let env = policy::environment();
    let options = ReadOptions { env: &env, ..ReadOptions::default() };
    let file = config::parse("the sample policy", POLICY, Format::Yaml, &options)?;
    let executor = Policy::of_right(file.hooks).executor(&env)?;
    let mut config = Config::default();
    config.listen.address = listen;
    config.upstreams = vec![UpstreamConfig::new("recorded", UpstreamKind::OpenAi, format!("http://{}", model.address))];
    config.guard = Guard::new(executor).map(Arc::new);
    Ok(Gateway::start(config)?)
}

async fn run_exchange(
    exchange: &'static str,
    prompt: &'static str,
    streamed: bool,
    gateway: SocketAddr,
    model: &Model,
) -> Result<Shown, Failure> {
    let request = json!({"model": "recorded", "stream": streamed, "messages": [{"role": "user", "content": prompt}]});
    let answer = client::post(gateway, "/v1/chat/completions", &request).await?;
    let upstream_saw = model.last_prompt();
    let verdict = answer.text("/hook/permission").unwrap_or_else(|| {
        let unchanged = upstream_saw.as_deref() == Some(prompt);
        if unchanged { "allow".to_owned() } else { "modify".to_owned() }
    });
    let places = ["/choices/0/message/content", "/choices/0/delta/content", "/error/message"];
    let client_got = places.iter().find_map(|place| answer.text(place)).unwrap_or_default();
    Ok(Shown { exchange, streamed, client_sent: prompt, upstream_saw, status: answer.status, client_got, verdict })
}

fn show(exchanges: &[Shown], as_json: bool, printer: &mut Printer) -> Result<(), Failure> {
    if as_json {
        return printer.json(&exchanges);
    }
    let mut table = Table::new(&["EXCHANGE", "CLIENT SENT", "UPSTREAM SAW", "CLIENT GOT", "VERDICT"]);
    for shown in exchanges {
        table.row([
            shown.exchange.to_owned(),
            shown.client_sent.to_owned(),
            shown.upstream_saw.clone().unwrap_or_else(|| "(nothing)".to_owned()),
            format!("{} {}", shown.status, shown.client_got),
            shown.verdict.clone(),
        ]);
    }
    printer.text(&table)
}

/// What to try next.
fn serving(address: SocketAddr) -> String {
    format!(
        "\nThe policy:\n{POLICY}\nServing on http://{address} until Ctrl-C. Try:\n\n  curl -s http://{address}/v1/chat/completions \
         -d '{{\"model\":\"recorded\",\"messages\":[{{\"role\":\"user\",\"content\":\"the launch codes, please\"}}]}}'\n"
    )
}
