//! What runs while something is measured, each started when it is first asked for.
//!
//! Gateway and nginx have core 1, each in its turn; load generator and mock servers have core 0.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::running::{Running, free_address};
use crate::Outcome;
use crate::program::{Program, cargo, target};

const LOAD_CORE: usize = 0;
pub(super) const SERVER_CORE: usize = 1;
/// What is measured, and what measures it.
pub(super) const GATEWAY: &[&str] = &["gatehook", "gatehook-bench"];

/// What stands between load and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Server {
    /// Nothing.
    Direct,
    Nginx,
    /// The gateway without hooks.
    Plain,
    /// With `redact_secrets` before and after.
    Redacting,
    /// With a webhook before and after.
    Webhooks,
    /// With `redact_secrets` on answers.
    Scanning,
    /// With a webhook that sees an answer when it is over.
    Observing,
    /// With a webhook that sees an answer window by window.
    Windowed,
    /// With a webhook that sees an answer before it leaves.
    Buffering,
}

/// The hooks of each server that has any; `HOOK` is the address of a webhook that allows everything.
const HOOKS: &[(Server, &str)] = &[
    (
        Server::Redacting,
        r#"
  pre_inference: { type: builtin, command: redact_secrets }
  post_inference: { type: builtin, command: redact_secrets }
"#,
    ),
    (
        Server::Webhooks,
        r#"
  pre_inference: { type: webhook, url: "http://HOOK/", contract: ollama }
  post_inference: { type: webhook, url: "http://HOOK/", contract: ollama }
"#,
    ),
    (Server::Scanning, "  post_inference: { type: builtin, command: redact_secrets }\n"),
    (
        Server::Observing,
        "  post_inference: { type: webhook, url: \"http://HOOK/\", contract: ollama, stream: { mode: observe } }\n",
    ),
    (
        Server::Windowed,
        "  post_inference: { type: webhook, url: \"http://HOOK/\", contract: ollama, stream: { mode: window } }\n",
    ),
    (
        Server::Buffering,
        "  post_inference: { type: webhook, url: \"http://HOOK/\", contract: ollama, stream: { mode: buffer } }\n",
    ),
];

impl Server {
    /// As the table's second column has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "without a gateway",
            Self::Nginx => "nginx",
            Self::Plain => "without hooks",
            Self::Redacting | Self::Scanning => "redact_secrets",
            Self::Webhooks => "webhooks",
            Self::Observing => "observing webhook",
            Self::Windowed => "windowed webhook",
            Self::Buffering => "buffering webhook",
        }
    }

    fn hooks(self) -> Option<&'static str> {
        HOOKS.iter().find(|(server, _)| *server == self).map(|(_, hooks)| *hooks)
    }
}

/// Everything that runs, by what it serves.
pub(super) struct Stand {
    directory: PathBuf,
    upstreams: HashMap<&'static str, Started>,
    servers: HashMap<(Server, &'static str), Started>,
}

struct Started {
    running: Running,
    address: SocketAddr,
}

impl Stand {
    /// Builds these packages: `gatehook-bench` and what it is to measure. Nothing runs yet.
    pub(super) fn build(packages: &[&str]) -> Outcome<Self> {
        let packages = packages.iter().flat_map(|package| ["--package", package]);
        cargo(&["build", "--release", "--locked"]).args(packages).run()?;
        let directory = target().join("bench");
        fs::create_dir_all(&directory)?;
        Ok(Self { directory, upstreams: HashMap::new(), servers: HashMap::new() })
    }

    /// A mock server that answers as `exchange` says, on the core of the load.
    pub(super) fn upstream(&mut self, exchange: &'static str) -> Outcome<SocketAddr> {
        if let Some(started) = self.upstreams.get(exchange) {
            return Ok(started.address);
        }
        let log = self.directory.join(format!("upstream-{exchange}.log"));
        let mut running = Running::start(LOAD_CORE, &[&text(&release("upstream"))?, exchange], &log)?;
        let address = running.address("")?;
        self.upstreams.insert(exchange, Started { running, address });
        Ok(address)
    }

    /// Ends what stands before that upstream: when it is asked for next it is started anew.
    pub(super) fn end_servers(&mut self, exchange: &'static str) {
        self.servers.retain(|(_, of), _| *of != exchange);
    }

    /// What a server in front of that upstream did under load, by the fields that `load` prints. Of streams,
    /// `cpu_us_per_frame` too: what the server's process took of its core.
    pub(super) fn load(
        &mut self,
        server: Server,
        exchange: &'static str,
        connections: usize,
        time: Duration,
    ) -> Outcome<Value> {
        let address = self.address(server, exchange)?;
        let before = self.processor_time(server, exchange)?;
        let printed = Program::new("taskset")
            .args(["--cpu-list", &LOAD_CORE.to_string()])
            .args(self.load_arguments(address, exchange, connections)?)
            .arg(time.as_secs_f64().to_string())
            .read()?;
        let mut measured: Value = serde_json::from_str(&printed)?;
        let took = self.processor_time(server, exchange)?.saturating_sub(before);
        let per_frame = measured.get("frames").and_then(Value::as_f64).map(|frames| took.as_secs_f64() * 1e6 / frames);
        if let (Some(per_frame), Some(fields)) = (per_frame, measured.as_object_mut()) {
            fields.insert("cpu_us_per_frame".to_owned(), per_frame.into());
        }
        Ok(measured)
    }

    /// Resident memory in MiB.
    pub(super) fn memory(&mut self, server: Server, exchange: &'static str) -> Outcome<f64> {
        self.address(server, exchange)?;
        let started = self.servers.get(&(server, exchange)).ok_or("this server has no process")?;
        started.running.memory()
    }

    /// Resident memory in MiB while so many streams stand open and each has sent some frames.
    pub(super) fn memory_of_open(&mut self, server: Server, connections: usize) -> Outcome<f64> {
        const EXCHANGE: &str = "slow";
        let address = self.address(server, EXCHANGE)?;
        let mut command = self.load_arguments(address, EXCHANGE, connections)?;
        command.push("0".to_owned());
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut load = Running::start(LOAD_CORE, &command, &self.directory.join("load-slow.log"))?;
        load.says("open ")?;
        self.memory(server, EXCHANGE)
    }

    fn load_arguments(&self, address: SocketAddr, exchange: &str, connections: usize) -> Outcome<Vec<String>> {
        Ok(vec![text(&release("load"))?, address.to_string(), exchange.to_owned(), connections.to_string()])
    }

    fn processor_time(&self, server: Server, exchange: &'static str) -> Outcome<Duration> {
        self.servers.get(&(server, exchange)).map_or(Ok(Duration::ZERO), |started| started.running.processor_time())
    }

    fn address(&mut self, server: Server, exchange: &'static str) -> Outcome<SocketAddr> {
        if let Some(started) = self.servers.get(&(server, exchange)) {
            return Ok(started.address);
        }
        let started = match server {
            Server::Direct => return self.upstream(exchange),
            Server::Nginx => self.start_nginx(exchange)?,
            _ => self.start_gateway(server, exchange)?,
        };
        let address = started.address;
        self.servers.insert((server, exchange), started);
        Ok(address)
    }

    fn start_gateway(&mut self, server: Server, exchange: &'static str) -> Outcome<Started> {
        let name = format!("{server:?}-{exchange}").to_lowercase();
        let (program, upstream) = (text(&release("gatehook"))?, format!("http://{}", self.upstream(exchange)?));
        let file = text(&self.directory.join(format!("{name}.yaml")))?;
        let mut command = vec![&*program, "serve", "--listen", "127.0.0.1:0", "--upstream", &upstream];
        if let Some(hooks) = server.hooks() {
            let webhook = self.upstream("hook")?.to_string();
            fs::write(&file, format!("hooks:\n{}", hooks.replace("HOOK", &webhook)))?;
            command.extend(["--config", &file]);
        }
        let mut running = Running::start(SERVER_CORE, &command, &self.directory.join(format!("{name}.log")))?;
        let address = running.address("listening on http://")?;
        Ok(Started { running, address })
    }

    fn start_nginx(&mut self, exchange: &'static str) -> Outcome<Started> {
        let (address, upstream) = (free_address()?, self.upstream(exchange)?);
        let directory = self.directory.join(format!("nginx-{exchange}"));
        fs::create_dir_all(&directory)?;
        let directory = text(&directory)?;
        let file = format!("{directory}/nginx.conf");
        let configuration = NGINX
            .replace("DIRECTORY", &directory)
            .replace("ADDRESS", &address.to_string())
            .replace("UPSTREAM", &upstream.to_string())
            .replace("BUFFERING", if STREAMS.contains(&exchange) { "off" } else { "on" });
        fs::write(&file, configuration)?;
        let log = self.directory.join(format!("nginx-{exchange}.log"));
        let mut running = Running::start(SERVER_CORE, &["nginx", "-p", &directory, "-c", &file], &log)?;
        running.listens(address)?;
        Ok(Started { running, address })
    }
}

/// Exchanges whose answers nginx is told to pass on as they come.
const STREAMS: [&str; 3] = ["stream", "frames", "paced"];

/// One process that serves by itself, which is what one worker amounts to and ends with one signal.
const NGINX: &str = "\
daemon off;
master_process off;
pid DIRECTORY/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path DIRECTORY/body;
    proxy_temp_path DIRECTORY/proxy;
    fastcgi_temp_path DIRECTORY/other;
    uwsgi_temp_path DIRECTORY/other;
    scgi_temp_path DIRECTORY/other;
    upstream model { server UPSTREAM; keepalive 128; keepalive_requests 1000000000; }
    server {
        listen ADDRESS;
        location / {
            proxy_pass http://model;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering BUFFERING;
        }
    }
}
";

/// What nginx calls itself; installed first where it is missing and apt can do it.
pub(super) fn nginx_version() -> Outcome<String> {
    if !Program::new("nginx").arg("-v").succeeds() {
        println!("nginx is missing: apt-get install nginx-light");
        Program::new("apt-get").args(["install", "--yes", "--no-install-recommends", "nginx-light"]).run()?;
    }
    let said = Program::new("sh").args(["-c", "nginx -v 2>&1"]).read()?;
    Ok(said.trim().trim_start_matches("nginx version: ").to_owned())
}

fn release(name: &str) -> PathBuf {
    target().join("release").join(name)
}

fn text(path: &Path) -> Outcome<String> {
    Ok(path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?.to_owned())
}
