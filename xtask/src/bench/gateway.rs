//! `cargo xtask bench gateway`: the gateway against nginx, and against itself without hooks.
//!
//! Gateway and nginx have core 1, each in its turn; load generator and mock upstream have core 0.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::report::{Bound, Report, Row};
use super::running::{Running, free_address};
use super::{Options, median};
use crate::Outcome;
use crate::program::{Program, cargo, target};

const LOAD_CORE: usize = 0;
const GATEWAY_CORE: usize = 1;

/// What stands between load and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Server {
    Nginx,
    /// Without hooks.
    Plain,
    /// With `redact_secrets` before and after.
    Redacting,
    /// With a webhook before and after.
    Webhooks,
}

/// A comparison of two servers under the same load, and one figure of it.
struct Comparison {
    what: &'static str,
    exchange: &'static str,
    connections: usize,
    figure: Figure,
    server: Server,
    yardstick: Server,
    bound: Bound,
}

#[derive(Debug, Clone, Copy)]
enum Figure {
    Rate,
    Median,
    FirstByte,
}

use Bound::{AtLeast, AtMost};
use Figure::{FirstByte, Median, Rate};
use Server::{Nginx, Plain, Redacting, Webhooks};

#[rustfmt::skip]
const COMPARISONS: &[Comparison] = &[
    Comparison { what: "JSON, no hooks, 1 connection: p50", exchange: "small", connections: 1, figure: Median, server: Plain, yardstick: Nginx, bound: AtMost(1.2) },
    Comparison { what: "JSON, no hooks, 32 connections: requests/s", exchange: "small", connections: 32, figure: Rate, server: Plain, yardstick: Nginx, bound: AtLeast(0.7) },
    Comparison { what: "SSE of 23 frames, no hooks, 1 connection: first byte p50", exchange: "stream", connections: 1, figure: FirstByte, server: Plain, yardstick: Nginx, bound: AtMost(1.3) },
    Comparison { what: "SSE of 23 frames, no hooks, 32 connections: streams/s", exchange: "stream", connections: 32, figure: Rate, server: Plain, yardstick: Nginx, bound: AtLeast(0.5) },
    Comparison { what: "redact_secrets on both sides, 4 KiB bodies, 32 connections: requests/s", exchange: "large", connections: 32, figure: Rate, server: Redacting, yardstick: Plain, bound: AtLeast(0.85) },
    Comparison { what: "webhooks on both sides, 1 connection: p50", exchange: "small", connections: 1, figure: Median, server: Webhooks, yardstick: Plain, bound: AtMost(3.0) },
    Comparison { what: "webhooks on both sides, 32 connections: requests/s", exchange: "small", connections: 32, figure: Rate, server: Webhooks, yardstick: Plain, bound: AtLeast(0.4) },
];

/// Everything that runs during the bench, by what it serves.
struct Stand {
    directory: PathBuf,
    upstreams: HashMap<&'static str, SocketAddr>,
    addresses: HashMap<(Server, &'static str), SocketAddr>,
    running: HashMap<(Server, &'static str), Running>,
    /// Held so that they keep running.
    others: Vec<Running>,
}

pub(crate) fn run(options: &Options) -> Outcome<Report> {
    let nginx = nginx_version()?;
    cargo(&["build", "--release", "--locked", "--package", "gatehook", "--package", "gatehook-bench"]).run()?;
    let stand = Stand::start()?;
    let plain = stand.running.get(&(Plain, "small")).ok_or("no gateway runs without hooks")?;
    let idle = plain.memory()?;
    let mut rows = vec![];
    for comparison in COMPARISONS {
        println!("{}", comparison.what);
        rows.push(comparison.measure(&stand, options)?);
    }
    rows.push(memory("resident memory, idle", idle, AtMost(25.0)));
    rows.push(memory("resident memory after the load above", plain.memory()?, Bound::Open));
    Ok(Report::new("gateway", &[nginx], rows))
}

fn memory(what: &str, value: f64, bound: Bound) -> Row {
    Row { what: what.to_owned(), value, unit: "MiB", against: None, bound }
}

impl Comparison {
    /// Both sides in turn, several times; the medians.
    fn measure(&self, stand: &Stand, options: &Options) -> Outcome<Row> {
        let mut sides = [(self.server, vec![]), (self.yardstick, vec![])];
        for _ in 0..options.rounds {
            for (server, values) in &mut sides {
                values.push(self.load(stand, *server, options)?);
            }
        }
        let [(_, values), (_, yardstick)] = sides;
        let name = if self.yardstick == Nginx { "nginx" } else { "without hooks" };
        let unit = if matches!(self.figure, Rate) { "/s" } else { "µs" };
        let against = Some((name.to_owned(), median(yardstick)));
        Ok(Row { what: self.what.to_owned(), value: median(values), unit, against, bound: self.bound })
    }

    fn load(&self, stand: &Stand, server: Server, options: &Options) -> Outcome<f64> {
        let address = stand.addresses.get(&(server, self.exchange)).ok_or("this server was not started")?;
        let printed = Program::new("taskset")
            .args(["--cpu-list", &LOAD_CORE.to_string()])
            .arg(release("load"))
            .args([&address.to_string(), self.exchange, &self.connections.to_string()])
            .arg(options.seconds.as_secs_f64().to_string())
            .read()?;
        let measured: Value = serde_json::from_str(&printed)?;
        let field = match self.figure {
            Rate => "rate",
            Median => "p50_us",
            FirstByte => "first_byte_p50_us",
        };
        measured.get(field).and_then(Value::as_f64).ok_or_else(|| format!("no {field} in {printed}").into())
    }
}

impl Stand {
    fn start() -> Outcome<Self> {
        let directory = target().join("bench");
        fs::create_dir_all(&directory)?;
        let mut stand = Self {
            directory,
            upstreams: HashMap::new(),
            addresses: HashMap::new(),
            running: HashMap::new(),
            others: vec![],
        };
        for exchange in ["small", "large", "stream", "hook"] {
            let log = stand.directory.join(format!("upstream-{exchange}.log"));
            let mut upstream = Running::start(LOAD_CORE, &[&text(&release("upstream"))?, exchange], &log)?;
            stand.upstreams.insert(exchange, upstream.address("")?);
            stand.others.push(upstream);
        }
        stand.start_nginx()?;
        let redact = "\n    - { type: builtin, command: redact_secrets }\n";
        let webhook =
            format!("\n    - {{ type: webhook, url: \"http://{}/\", contract: ollama }}\n", stand.upstream("hook")?);
        for (server, exchange, hook) in [
            (Plain, "small", None),
            (Plain, "large", None),
            (Plain, "stream", None),
            (Redacting, "large", Some(redact)),
            (Webhooks, "small", Some(webhook.as_str())),
        ] {
            stand.start_gateway(server, exchange, hook)?;
        }
        Ok(stand)
    }

    fn upstream(&self, exchange: &str) -> Outcome<SocketAddr> {
        self.upstreams.get(exchange).copied().ok_or_else(|| format!("no upstream {exchange}").into())
    }

    fn start_gateway(&mut self, server: Server, exchange: &'static str, hook: Option<&str>) -> Outcome {
        let name = format!("{server:?}-{exchange}").to_lowercase();
        let (program, upstream) = (text(&release("gatehook"))?, format!("http://{}", self.upstream(exchange)?));
        let file = text(&self.directory.join(format!("{name}.yaml")))?;
        let mut command = vec![&*program, "serve", "--listen", "127.0.0.1:0", "--upstream", &upstream];
        if let Some(hook) = hook {
            fs::write(&file, format!("hooks:\n  pre_inference:{hook}  post_inference:{hook}"))?;
            command.extend(["--config", &file]);
        }
        let mut running = Running::start(GATEWAY_CORE, &command, &self.directory.join(format!("{name}.log")))?;
        self.addresses.insert((server, exchange), running.address("listening on http://")?);
        self.running.insert((server, exchange), running);
        Ok(())
    }

    fn start_nginx(&mut self) -> Outcome {
        let mut servers = String::new();
        for (exchange, options) in [("small", ""), ("stream", "proxy_buffering off;")] {
            let (address, upstream) = (free_address()?, self.upstream(exchange)?);
            servers += &NGINX_SERVER
                .replace("NAME", exchange)
                .replace("ADDRESS", &address.to_string())
                .replace("UPSTREAM", &upstream.to_string())
                .replace("OPTIONS", options);
            self.addresses.insert((Nginx, exchange), address);
        }
        let directory = text(&self.directory)?;
        let configuration = text(&self.directory.join("nginx.conf"))?;
        fs::write(&configuration, NGINX.replace("DIRECTORY", &directory).replace("SERVERS", &servers))?;
        let log = self.directory.join("nginx.log");
        let mut nginx = Running::start(GATEWAY_CORE, &["nginx", "-p", &directory, "-c", &configuration], &log)?;
        for (server, address) in &self.addresses {
            if server.0 == Nginx {
                nginx.listens(*address)?;
            }
        }
        self.others.push(nginx);
        Ok(())
    }
}

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
    client_body_temp_path DIRECTORY/nginx-body;
    proxy_temp_path DIRECTORY/nginx-proxy;
    fastcgi_temp_path DIRECTORY/nginx-other;
    uwsgi_temp_path DIRECTORY/nginx-other;
    scgi_temp_path DIRECTORY/nginx-other;
SERVERS}
";

const NGINX_SERVER: &str = "    \
    upstream NAME { server UPSTREAM; keepalive 128; keepalive_requests 1000000000; }
    server {
        listen ADDRESS;
        location / { proxy_pass http://NAME; proxy_http_version 1.1; proxy_set_header Connection \"\"; OPTIONS }
    }
";

/// What nginx calls itself; installed first where it is missing and apt can do it.
fn nginx_version() -> Outcome<String> {
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
