//! Opening a connection to an upstream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where an upstream is reached.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Name or address.
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    /// How TLS is spoken; `None` for cleartext.
    pub(crate) tls: Option<Tls>,
}

/// TLS towards one server.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<rustls::ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl Endpoint {
    pub(crate) async fn connect(&self) -> io::Result<Io> {
        let stream = TcpStream::connect((&*self.host, self.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Io::Plain(stream)) };
        let stream = TlsConnector::from(tls.config.clone()).connect(tls.name.clone(), stream).await?;
        Ok(Io::Tls(Box::new(stream)))
    }
}

/// A byte stream to an upstream.
#[derive(Debug)]
pub(crate) enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! each {
    ($io:expr, $stream:ident => $call:expr) => {
        match $io.get_mut() {
            Io::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Io::Tls($stream) => {
                let $stream = Pin::new(&mut **$stream);
                $call
            }
        }
    };
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Io::Plain(_))
    }
}
