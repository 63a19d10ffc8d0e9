use std::hash::{Hash, Hasher};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::pool::Connection;
use super::{ClientError, Reach};

/// For resolving, connecting and the TLS handshake together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The system's certificates, read once: that takes some 10 ms.
static SYSTEM_TLS: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

/// Where requests go: scheme, host and port, without user information.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Origin {
    https: bool,
    authority: Authority,
}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.authority.hash(state);
    }
}

impl Origin {
    pub(super) fn of(url: &Uri) -> Result<Self, ClientError> {
        let https = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(ClientError::InvalidUrl),
        };
        let given = url.authority().ok_or(ClientError::InvalidUrl)?;
        let authority = match given.as_str().rsplit_once('@') {
            Some((_, bare)) => bare.parse().map_err(|_| ClientError::InvalidUrl)?,
            None => given.clone(),
        };
        if authority.host().is_empty() {
            return Err(ClientError::InvalidUrl);
        }
        Ok(Self { https, authority })
    }

    /// As in `[::1]:8080`.
    pub(super) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Without brackets.
    pub(super) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.https { 443 } else { 80 })
    }
}

/// Opens connections.
pub(super) struct Connector {
    reach: Reach,
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(super) fn new(reach: Reach, tls: Option<Arc<ClientConfig>>) -> Self {
        Self { reach, tls }
    }

    /// Cancel safe: dropped, it leaves at most a look-up of a name behind, whose answer nobody reads.
    pub(super) async fn connect(&self, origin: &Origin) -> Result<Connection, ClientError> {
        let late = |_| ClientError::ConnectTimeout { host: origin.host().to_owned() };
        timeout(CONNECT_TIMEOUT, self.connect_patiently(origin)).await.map_err(late)?
    }

    async fn connect_patiently(&self, origin: &Origin) -> Result<Connection, ClientError> {
        let stream = self.connect_tcp(origin).await?;
        if !origin.https {
            return drive(stream, origin).await;
        }
        let failed = |source| ClientError::Tls { host: origin.host().to_owned(), source };
        let config = match &self.tls {
            Some(config) => config,
            None => SYSTEM_TLS.get_or_try_init(system_tls).await.map_err(failed)?,
        };
        let name = ServerName::try_from(origin.host().to_owned()).map_err(|error| failed(io::Error::other(error)))?;
        let connector = TlsConnector::from(Arc::clone(config));
        drive(connector.connect(name, stream).await.map_err(failed)?, origin).await
    }

    async fn connect_tcp(&self, origin: &Origin) -> Result<TcpStream, ClientError> {
        let host = || origin.host().to_owned();
        let mut addresses = resolve(origin).await?;
        addresses.retain(|address| self.reach.allows(address.ip()));
        let Ok(count) = u32::try_from(addresses.len()) else { return Err(ClientError::InvalidUrl) };
        let mut last = None;
        for address in addresses {
            // One address that swallows packets does not keep the others from their turn.
            match timeout(CONNECT_TIMEOUT / count.max(1), TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true).map_err(|source| ClientError::Connect { host: host(), source })?;
                    return Ok(stream);
                }
                Ok(Err(source)) => last = Some(ClientError::Connect { host: host(), source }),
                Err(_) => last = Some(ClientError::ConnectTimeout { host: host() }),
            }
        }
        Err(last.unwrap_or_else(|| ClientError::Forbidden { host: host() }))
    }
}

async fn resolve(origin: &Origin) -> Result<Vec<SocketAddr>, ClientError> {
    if let Ok(address) = origin.host().parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, origin.port())]);
    }
    let failed = |source| ClientError::Resolve { host: origin.host().to_owned(), source };
    let found: Vec<_> = lookup_host((origin.host(), origin.port())).await.map_err(failed)?.collect();
    if found.is_empty() { Err(failed(io::ErrorKind::NotFound.into())) } else { Ok(found) }
}

async fn drive(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    origin: &Origin,
) -> Result<Connection, ClientError> {
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| ClientError::exchange(origin, error))?;
    let driver = tokio::spawn(async move {
        // Whoever waits for a response gets the error too.
        let _ = connection.await;
    });
    Ok(Connection::new(sender, driver))
}

async fn system_tls() -> io::Result<Arc<ClientConfig>> {
    let load = || {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 {
            return Err(io::Error::other("this system has no certificates to trust"));
        }
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
        let mut config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    };
    tokio::task::spawn_blocking(load).await.map_err(io::Error::other)?
}
