//! The gateway's own sections of a configuration file, beside `hooks:` and what else the engine reads.
//!
//! Several files may speak: [`Settings::or`] lets the stronger one win, [`Settings::apply`] lets them all win over a
//! [`Config`]'s defaults. To add a setting, add a row to a table here and read it in the function below that table.

use std::net::SocketAddr;
use std::time::Duration;

use gatehook_engine::config::{
    self, ConfigError, Context, Diagnostic, DiagnosticKind, Diagnostics, Document, Field, ReadOptions, Section, Shape,
    words,
};
use gatehook_engine::schema as engine_schema;
use gatehook_inference::Ending;
use serde_json::{Value, json};

use crate::config::{Config, Door, KeyConfig, KeySecret, Limits, Secret, Streams, UpstreamConfig, UpstreamKind};
pub use crate::models::settings::MODEL;
use crate::models::{self, ModelConfig};
use crate::upstream::{Upstream, UpstreamError};

/// The kinds of upstreams by their names.
pub const KIND: [(&str, UpstreamKind); 3] =
    [("ollama", UpstreamKind::Ollama), ("openai", UpstreamKind::OpenAi), ("anthropic", UpstreamKind::Anthropic)];
/// Doors by their names.
pub const DOOR: [(&str, Door); 2] = [("pass", Door::Pass), ("closed", Door::Closed)];

/// Ends of refused streams by their names.
pub const ON_BLOCK: [(&str, Ending); 2] = [("refusal", Ending::Refusal), ("content_filter", Ending::ContentFilter)];

pub(crate) const KIND_WORDS: &[&str] = &words(&KIND);
const DOOR_WORDS: &[&str] = &words(&DOOR);
const ON_BLOCK_WORDS: &[&str] = &words(&ON_BLOCK);

/// The gateway's sections of a file.
pub const FILE: &[Field] = &[
    Field::new("listen", Shape::Table(LISTEN), "Where the gateway listens, and whom it lets in."),
    Field::new("upstreams", Shape::Any, "Servers that run models, by name; the first is the default."),
    Field::new(
        "keys",
        Shape::Any,
        "Keys that callers present, by name; none lets everyone in who reaches the address.",
    ),
    Field::new(
        "models",
        Shape::Any,
        "Models that judge for hooks of `type: model`, or answer an agent, by name, as in `ollama/*`.",
    ),
    Field::new("limits", Shape::Table(LIMITS), "What is waited for, and how much is held."),
    Field::new("streams", Shape::Table(STREAMS), "How a streamed answer is sent while hooks look at it."),
    Field::new("management", Shape::Word(DOOR_WORDS), "Pulling, pushing, creating, copying and deleting models.")
        .default("pass"),
    Field::new("unknown_paths", Shape::Word(DOOR_WORDS), "Paths that the table does not know, once a hook may block.")
        .default("closed"),
    Field::new("workers", Shape::Integer, "Network threads.").default("one for each processor"),
];

/// `listen`.
pub const LISTEN: &[Field] = &[
    Field::new("address", Shape::Text, "Address and port; port 0 picks a free one.").default("127.0.0.1:11435"),
    Field::new("open", Shape::Bool, "Listen beyond loopback although no key is asked for.").default("false"),
    Field::new("origins", Shape::Texts, "Browser origins beside those of this machine."),
    Field::new("hosts", Shape::Texts, "Names beside the loopback ones by which a gateway on loopback may be called."),
];

/// One of `upstreams`.
pub const UPSTREAM: &[Field] = &[
    Field::new("kind", Shape::Word(KIND_WORDS), "What it speaks, and which other doors it has.").default("ollama"),
    Field::new("url", Shape::Text, "`http://host:port/base`, `https://…`, or `replay:FILE`."),
    Field::new("models", Shape::Texts, "The models it serves, `*` stands for anything.")
        .default("those that no other upstream claims"),
    Field::new("api_key", Shape::Text, "The credential it wants; `${env.NAME}` names a variable.")
        .default("the client's own"),
    Field::new("api_key_file", Shape::Text, "A file that holds it."),
    Field::new("ca_file", Shape::Text, "Certificate authorities of its https, in PEM.").default("the system's"),
];

/// One of `keys`.
pub const KEY: &[Field] = &[
    Field::new("sha256", Shape::Text, "SHA-256 of the key, in hexadecimal."),
    Field::new("file", Shape::Text, "A file that holds the key."),
];

/// `limits`.
pub const LIMITS: &[Field] = &[
    Field::new("request_body", Shape::Integer, "Bytes of a request that a hook is to see.").default("33554432"),
    Field::new("response_body", Shape::Integer, "Bytes that are kept of an answer for hooks.").default("33554432"),
    Field::new("bodies_in_flight", Shape::Integer, "Bytes held for hooks at one time.").default("536870912"),
    Field::new("connections", Shape::Integer, "Connections of clients at one time.").default("8192"),
    Field::new("client_head", Shape::Duration, "A client must have sent its request's head.").default("10s"),
    Field::new("client_keep_alive", Shape::Duration, "A kept connection may stand idle.").default("75s"),
    Field::new("connect", Shape::Duration, "An upstream must have accepted the connection.").default("5s"),
    Field::new("first_byte", Shape::Duration, "An upstream must have begun to answer.").default("600s"),
    Field::new("idle", Shape::Duration, "An upstream may pause within an answer.").default("300s"),
];

/// `streams`.
pub const STREAMS: &[Field] = &[
    Field::new("commit_after", Shape::Duration, "The status line waits for the first text that may leave, so long.")
        .default("10s"),
    Field::new("keep_alive", Shape::Duration, "A client that waits is sent a sign of life so often; `0s` sends none.")
        .default("5s"),
    Field::new("on_block", Shape::Word(ON_BLOCK_WORDS), "How a stream that has begun ends when a hook refuses.")
        .default("refusal"),
];

/// What files say to the gateway; what is absent was not said.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    address: Option<SocketAddr>,
    open: Option<bool>,
    origins: Option<Vec<String>>,
    hosts: Option<Vec<String>>,
    upstreams: Option<Vec<UpstreamConfig>>,
    keys: Option<Vec<KeyConfig>>,
    models: Option<Vec<ModelConfig>>,
    limits: Option<Limits>,
    streams: Option<Streams>,
    management: Option<Door>,
    unknown_paths: Option<Door>,
    workers: Option<usize>,
}

/// Reads a whole file: what it says to the engine, and what to the gateway.
pub fn read(document: &Document, options: &ReadOptions<'_>) -> Result<(config::File, Settings), ConfigError> {
    let diagnostics = Diagnostics::new();
    let read = read_parts(document, options, &diagnostics);
    diagnostics.finish(document, read)
}

/// The same, for whoever reads further parts of the file, which `options.sections` names. It is only good for use where
/// nothing is wrong.
pub fn read_parts(
    document: &Document,
    options: &ReadOptions<'_>,
    diagnostics: &Diagnostics,
) -> (config::File, Settings) {
    let own = FILE.iter().map(|field| field.name);
    let sections: Vec<&str> = own.chain(options.sections.iter().copied()).collect();
    let options = ReadOptions { sections: &sections, ..options.clone() };
    let file = config::read_file(document, &options, diagnostics);
    let context = Context { document, diagnostics };
    let settings = match &document.root.value {
        // What a foreign program's file says besides is that program's.
        _ if options.profile.spec().is_foreign || is_docker_agents(document, &options) => None,
        config::Value::Map(_) => Section::open(context, &document.root, "", FILE),
        _ => None,
    };
    let settings = settings.map(|root| Settings::read(&root, &options)).unwrap_or_default();
    (file, settings)
}

fn is_docker_agents(document: &Document, options: &ReadOptions<'_>) -> bool {
    config::docker_agent::is_of(options.profile) && config::docker_agent::is_own(document)
}

/// JSON Schema of a whole file.
pub fn schema() -> Value {
    let mut schema = engine_schema::configuration();
    let own = engine_schema::section(FILE);
    if let (Some(all), Some(own)) =
        (schema.get_mut("properties").and_then(Value::as_object_mut), own.get("properties").and_then(Value::as_object))
    {
        all.extend(own.clone());
        for (name, fields) in [("upstreams", UPSTREAM), ("keys", KEY), ("models", MODEL)] {
            if let Some(section) = all.get_mut(name).and_then(Value::as_object_mut) {
                section.insert("type".to_owned(), json!("object"));
                section.insert("additionalProperties".to_owned(), engine_schema::section(fields));
            }
        }
    }
    schema
}

impl Settings {
    fn read(root: &Section<'_>, options: &ReadOptions<'_>) -> Self {
        let listen = root.section("listen", LISTEN);
        let limits = root.section("limits", LIMITS);
        Self {
            address: listen.as_ref().and_then(address),
            open: listen.as_ref().and_then(|listen| listen.bool("open")),
            origins: listen.as_ref().and_then(|listen| listen.texts("origins")),
            hosts: listen.as_ref().and_then(|listen| listen.texts("hosts")),
            upstreams: root.node("upstreams").map(|_| {
                let sections = root.named_sections("upstreams", UPSTREAM);
                sections.iter().filter_map(|(name, section)| upstream(name, section, options)).collect()
            }),
            keys: root.node("keys").map(|_| {
                let sections = root.named_sections("keys", KEY);
                sections.iter().filter_map(|(name, section)| key(name, section, options)).collect()
            }),
            models: root.node("models").map(|_| {
                let sections = root.named_sections("models", MODEL);
                sections.iter().filter_map(|(name, section)| models::settings::model(name, section, options)).collect()
            }),
            limits: limits.as_ref().map(read_limits),
            streams: root.section("streams", STREAMS).as_ref().map(read_streams),
            management: root.choice("management", &DOOR),
            unknown_paths: root.choice("unknown_paths", &DOOR),
            workers: root.count("workers", 1),
        }
    }

    /// These settings, and where they are silent those of a weaker file.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        Self {
            address: self.address.or(weaker.address),
            open: self.open.or(weaker.open),
            origins: self.origins.or(weaker.origins),
            hosts: self.hosts.or(weaker.hosts),
            upstreams: self.upstreams.or(weaker.upstreams),
            keys: self.keys.or(weaker.keys),
            models: self.models.or(weaker.models),
            limits: self.limits.or(weaker.limits),
            streams: self.streams.or(weaker.streams),
            management: self.management.or(weaker.management),
            unknown_paths: self.unknown_paths.or(weaker.unknown_paths),
            workers: self.workers.or(weaker.workers),
        }
    }

    /// Whether a file names upstreams.
    pub fn names_upstreams(&self) -> bool {
        self.upstreams.as_ref().is_some_and(|upstreams| !upstreams.is_empty())
    }

    /// The models that judge.
    pub fn models(&self) -> &[ModelConfig] {
        self.models.as_deref().unwrap_or_default()
    }

    /// Puts these settings into `config`.
    pub fn apply(self, config: &mut Config) {
        put(&mut config.listen.address, self.address);
        put(&mut config.listen.open, self.open);
        put(&mut config.listen.origins, self.origins);
        put(&mut config.listen.hosts, self.hosts);
        put(&mut config.upstreams, self.upstreams.filter(|upstreams| !upstreams.is_empty()));
        put(&mut config.keys, self.keys);
        put(&mut config.limits, self.limits);
        put(&mut config.streams, self.streams);
        put(&mut config.management, self.management);
        put(&mut config.unknown_paths, self.unknown_paths);
        put(&mut config.workers, self.workers);
    }
}

/// Gives these sections of `config` the values that they have in `locked`, whoever set them since.
pub fn restore(sections: &[String], locked: &Config, config: &mut Config) {
    for section in sections {
        match section.as_str() {
            "listen" => config.listen.clone_from(&locked.listen),
            "upstreams" => config.upstreams.clone_from(&locked.upstreams),
            "keys" => config.keys.clone_from(&locked.keys),
            "limits" => config.limits.clone_from(&locked.limits),
            "streams" => config.streams.clone_from(&locked.streams),
            "management" => config.management = locked.management,
            "unknown_paths" => config.unknown_paths = locked.unknown_paths,
            "workers" => config.workers = locked.workers,
            _ => {}
        }
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn address(listen: &Section<'_>) -> Option<SocketAddr> {
    let text = listen.text("address")?;
    text.parse().map_err(|_| invalid(listen, "address", "this is no address", "write it as in `127.0.0.1:11435`")).ok()
}

fn upstream(name: &str, section: &Section<'_>, options: &ReadOptions<'_>) -> Option<UpstreamConfig> {
    let kind = section.choice("kind", &KIND).unwrap_or(UpstreamKind::Ollama);
    let Some(url) = section.text("url") else {
        if section.node("url").is_none() {
            let problem = section.problem(DiagnosticKind::InvalidValue, "an upstream needs a `url`");
            section.report(problem.at(section.head()).help("write it as in `http://127.0.0.1:11434`"));
        }
        return None;
    };
    let url = match url.strip_prefix("replay:") {
        Some("") => url.to_owned(),
        Some(file) => format!("replay:{}", options.working_dir.join(file).display()),
        None => url.to_owned(),
    };
    let api_key = match (section.text("api_key"), section.text("api_key_file")) {
        (Some(_), Some(_)) => {
            invalid(section, "api_key_file", "a key stands here and in a file", "keep one of them");
            None
        }
        (Some(written), None) => variable(section, written, options).map(Secret::Value),
        (None, file) => file.map(|file| Secret::File(options.working_dir.join(file))),
    };
    let config = UpstreamConfig {
        models: section.texts("models").unwrap_or_default(),
        api_key,
        ca_file: section.text("ca_file").map(|file| options.working_dir.join(file)),
        ..UpstreamConfig::new(name, kind, url)
    };
    match Upstream::new(&config) {
        Ok(_) => Some(config),
        Err(error) => {
            let (field, help) = at_fault(&error, section);
            let problem: Diagnostic = section.problem(DiagnosticKind::InvalidValue, error.to_string());
            section.report(problem.at(section.place(field)).maybe_help(help.map(str::to_owned)));
            None
        }
    }
}

/// The field that an upstream cannot be used for, and what to do about it.
fn at_fault(error: &UpstreamError, section: &Section<'_>) -> (&'static str, Option<&'static str>) {
    let names = |field: &&str, file: &str| section.text(field).is_some_and(|written| file.ends_with(written));
    match error {
        UpstreamError::Address { .. } => ("url", Some("write it as in `http://127.0.0.1:11434`")),
        UpstreamError::Key { .. } if section.node("api_key").is_some() => ("api_key", None),
        UpstreamError::Key { .. } => ("api_key_file", None),
        UpstreamError::File { file, .. } => {
            (["api_key_file", "ca_file"].into_iter().find(|field| names(field, file)).unwrap_or("url"), None)
        }
    }
}

/// A value as written, or the variable that `${env.NAME}` names.
pub(crate) fn variable(section: &Section<'_>, written: &str, options: &ReadOptions<'_>) -> Option<String> {
    section.context.diagnostics.conceal(section.place("api_key"));
    let Some(name) = written.strip_prefix("${env.").and_then(|rest| rest.strip_suffix('}')) else {
        return Some(written.to_owned());
    };
    let value = options.env.get(name).cloned();
    if value.is_none() {
        let problem = section.problem(DiagnosticKind::MissingVariable, format!("the variable `{name}` is not set"));
        section.report(problem.at(section.place("api_key")));
    }
    value
}

fn key(name: &str, section: &Section<'_>, options: &ReadOptions<'_>) -> Option<KeyConfig> {
    let secret = match (section.text("sha256"), section.text("file")) {
        (Some(hash), None) if hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            KeySecret::Sha256(hash.to_ascii_lowercase())
        }
        (Some(_), None) => {
            invalid(section, "sha256", "this is no SHA-256", "write its 64 hexadecimal digits");
            return None;
        }
        (None, Some(file)) => KeySecret::File(options.working_dir.join(file)),
        _ => {
            let problem = section.problem(DiagnosticKind::InvalidValue, "a key needs `sha256` or `file`, one of them");
            section.report(problem.at(section.head()));
            return None;
        }
    };
    Some(KeyConfig { name: name.to_owned(), secret })
}

fn read_limits(section: &Section<'_>) -> Limits {
    let mut limits = Limits::default();
    for (name, place) in [
        ("request_body", &mut limits.request_body),
        ("response_body", &mut limits.response_body),
        ("bodies_in_flight", &mut limits.bodies_in_flight),
        ("connections", &mut limits.connections),
    ] {
        put(place, section.count(name, 1));
    }
    for (name, place) in [
        ("client_head", &mut limits.client_head),
        ("client_keep_alive", &mut limits.client_keep_alive),
        ("connect", &mut limits.connect),
        ("first_byte", &mut limits.first_byte),
        ("idle", &mut limits.idle),
    ] {
        put(place, section.duration(name).filter(|duration| *duration > Duration::ZERO));
    }
    limits
}

fn read_streams(section: &Section<'_>) -> Streams {
    let mut streams = Streams::default();
    for (name, place) in [("commit_after", &mut streams.commit_after), ("keep_alive", &mut streams.keep_alive)] {
        put(place, section.duration(name));
    }
    put(&mut streams.on_block, section.choice("on_block", &ON_BLOCK));
    streams
}

/// Reports a value at fault.
fn invalid(section: &Section<'_>, field: &str, message: &str, help: &str) {
    let problem: Diagnostic = section.problem(DiagnosticKind::InvalidValue, message);
    section.report(problem.at(section.place(field)).help(help));
}

#[cfg(test)]
mod tests {
    use gatehook_engine::config::Format;

    use super::*;

    fn streams(text: &str) -> Result<Streams, ConfigError> {
        let document = Document::parse("test.yaml", text, Format::Yaml)?;
        let mut config = Config::default();
        read(&document, &ReadOptions::default())?.1.apply(&mut config);
        Ok(config.streams)
    }

    #[test]
    fn how_streams_are_sent_is_read_and_what_is_not_said_stays() {
        assert_eq!(streams("workers: 1").unwrap(), Streams::default());
        let said = streams("streams: { commit_after: 0s, on_block: content_filter }").unwrap();
        let commit_after = Duration::ZERO;
        assert_eq!(said, Streams { commit_after, on_block: Ending::ContentFilter, ..Streams::default() });
        for wrong in ["streams: { on_block: silence }", "streams: { keep_alive: often }", "streams: { ping: 1s }"] {
            assert!(streams(wrong).is_err(), "{wrong}");
        }
    }
}
