//! The servers behind the gateway, checked and ready to be called.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use http::uri::PathAndQuery;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use url::Url;

use crate::config::{Secret, UpstreamConfig, UpstreamKind};
use crate::dial::{Endpoint, Tls};
use crate::replay::Replay;

/// A server that requests go to.
pub(crate) struct Upstream {
    /// Its identity in pools; never used twice in one process.
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    pub(crate) kind: UpstreamKind,
    pub(crate) models: Vec<Pattern>,
    pub(crate) target: Target,
}

/// What answers.
pub(crate) enum Target {
    /// A server.
    Http(Http),
    /// A script.
    Replay(Replay),
}

/// A server spoken to by HTTP/1.
pub(crate) struct Http {
    pub(crate) endpoint: Endpoint,
    /// `Host` of requests to it.
    pub(crate) host: HeaderValue,
    /// What stands before every path; empty without.
    pub(crate) base: Box<str>,
    /// The credential in place of the client's: `Bearer …` or a bare key, as the kind takes it.
    pub(crate) credential: Option<HeaderValue>,
}

/// Why an upstream cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Its address.
    #[error("upstream `{name}`: `{url}` cannot be called: {why}")]
    Address {
        /// Its name.
        name: String,
        /// The address without user information.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// A file that it needs.
    #[error("upstream `{name}`: {file} cannot be read: {why}")]
    File {
        /// Its name.
        name: String,
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// Its key.
    #[error("upstream `{name}`: the key holds characters that cannot stand in a header")]
    Key {
        /// Its name.
        name: String,
    },
}

impl Upstream {
    /// Checks the configuration, and reads the files it names.
    pub(crate) fn new(config: &UpstreamConfig) -> Result<Self, UpstreamError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let target = match config.url.strip_prefix("replay:") {
            Some(file) => Target::Replay(Replay::open(file).map_err(|error| UpstreamError::File {
                name: config.name.clone(),
                file: file.to_owned(),
                why: error.to_string(),
            })?),
            None => Target::Http(Http::new(config)?),
        };
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name: config.name.as_str().into(),
            kind: config.kind,
            models: config.models.iter().map(|model| Pattern::new(model)).collect(),
            target,
        })
    }

    /// Whether it claims this model.
    pub(crate) fn claims(&self, model: &str) -> bool {
        self.models.iter().any(|pattern| pattern.fits(model))
    }
}

/// Where a server is, read from its address.
struct Address {
    url: Url,
    host: String,
    /// The host's name for TLS; `None` for cleartext.
    tls: Option<ServerName<'static>>,
}

impl Address {
    fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        let host = url.host_str().ok_or("it names no host")?.trim_matches(['[', ']']).to_owned();
        if !url.username().is_empty() || url.password().is_some() {
            return Err("user information does not belong into an address, set api_key".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("an upstream is a base address, without query and fragment".to_owned());
        }
        let tls = match url.scheme() {
            "http" => None,
            "https" => {
                Some(ServerName::try_from(host.clone()).map_err(|_| "its host cannot be checked by TLS".to_owned())?)
            }
            _ => return Err("only http, https and replay are spoken".to_owned()),
        };
        Ok(Self { url, host, tls })
    }
}

/// An address as it may be shown: without user information.
fn shown(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        let host = text.rsplit('@').next().unwrap_or_default();
        return host.split(['?', '#']).next().unwrap_or_default().to_owned();
    };
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

impl Http {
    fn new(config: &UpstreamConfig) -> Result<Self, UpstreamError> {
        let wrong = |why: &str| address(config, &shown(&config.url), why);
        let Address { url, host, tls: name } = Address::parse(&config.url).map_err(|why| wrong(&why))?;
        let tls = name.map(|name| Ok::<_, UpstreamError>(Tls { config: tls(config)?, name })).transpose()?;
        let port = url.port_or_known_default().ok_or_else(|| wrong("it names no port"))?;
        let authority = url.port().map_or_else(|| bracketed(&host), |port| format!("{}:{port}", bracketed(&host)));
        Ok(Self {
            endpoint: Endpoint { host: host.as_str().into(), port, tls },
            host: HeaderValue::from_str(&authority).map_err(|_| wrong("its host cannot stand in a header"))?,
            base: url.path().trim_end_matches('/').into(),
            credential: credential(config)?,
        })
    }

    /// The request target for a client's one.
    pub(crate) fn target(&self, path: PathAndQuery) -> PathAndQuery {
        if self.base.is_empty() {
            return path;
        }
        PathAndQuery::try_from(format!("{}{}", self.base, path)).unwrap_or(path)
    }
}

/// An IPv6 address as it stands before a port.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn address(config: &UpstreamConfig, url: &str, why: impl ToString) -> UpstreamError {
    UpstreamError::Address { name: config.name.clone(), url: url.to_owned(), why: why.to_string() }
}

fn file_error(config: &UpstreamConfig, path: &std::path::Path, why: impl ToString) -> UpstreamError {
    UpstreamError::File { name: config.name.clone(), file: path.display().to_string(), why: why.to_string() }
}

/// The key as the upstream takes it in its header.
fn credential(config: &UpstreamConfig) -> Result<Option<HeaderValue>, UpstreamError> {
    let key = match &config.api_key {
        None => return Ok(None),
        Some(Secret::Value(key)) => key.clone(),
        Some(Secret::File(path)) => std::fs::read_to_string(path).map_err(|error| file_error(config, path, error))?,
    };
    let text = match config.kind {
        UpstreamKind::Anthropic => key.trim().to_owned(),
        UpstreamKind::Ollama | UpstreamKind::OpenAi => format!("Bearer {}", key.trim()),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| UpstreamError::Key { name: config.name.clone() })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// TLS with the system's authorities, or those of the configured file.
fn tls(config: &UpstreamConfig) -> Result<Arc<rustls::ClientConfig>, UpstreamError> {
    let mut roots = rustls::RootCertStore::empty();
    match &config.ca_file {
        Some(path) => {
            let wrong = |error: String| file_error(config, path, error);
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))? {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| address(config, &shown(&config.url), error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// A name with `*` for any run of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Box<str>>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self { parts: text.split('*').map(Into::into).collect() }
    }

    /// Whether the whole of `name` fits.
    pub(crate) fn fits(&self, name: &str) -> bool {
        let Some((first, rest)) = self.parts.split_first() else { return false };
        let Some((last, middle)) = rest.split_last() else { return name == &**first };
        let Some(mut left) = name.strip_prefix(&**first).and_then(|left| left.strip_suffix(&**last)) else {
            return false;
        };
        for part in middle {
            match left.find(&**part).and_then(|at| left.get(at + part.len()..)) {
                Some(after) => left = after,
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_the_whole_name() {
        for (pattern, name, fits) in [
            ("llama3", "llama3", true),
            ("llama3", "llama3.1", false),
            ("gpt-*", "gpt-5", true),
            ("gpt-*", "my-gpt-5", false),
            ("*", "", true),
            ("*:cloud", "kimi:cloud", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(Pattern::new(pattern).fits(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_wrong_address_is_named_without_its_password() {
        let config = UpstreamConfig::new("x", UpstreamKind::Ollama, "ftp://me:secret@host/");
        let error = Upstream::new(&config).err().expect("refused").to_string();
        assert!(error.contains("ftp://host/") && !error.contains("secret"), "{error}");
    }
}
