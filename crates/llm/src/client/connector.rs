//! Connects to a service with TLS. The files of the credentials are read for each connection.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::Uri;
use tonic::codegen::{BoxFuture, Service};

use super::credentials::Credentials;
use crate::pem::FileError;

const DEFAULT_PORT: u16 = 443;

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectFault {
    #[error("{0}")]
    Tcp(io::Error),
    #[error("{0}")]
    Tls(io::Error),
    #[error("{0}")]
    File(#[from] FileError),
    #[error("'{0}' is no host that a certificate can name")]
    Host(String),
}

/// Opens connections with TLS.
#[derive(Clone, Debug)]
pub(super) struct SecureConnector {
    pub(super) credentials: Arc<Credentials>,
    /// The time limit for TCP and the handshake together.
    pub(super) timeout: Duration,
}

impl SecureConnector {
    async fn connect(self, uri: Uri) -> Result<TokioIo<TlsStream<TcpStream>>, ConnectFault> {
        let host = uri
            .host()
            .unwrap_or_default()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|_error| ConnectFault::Host(host.clone()))?;
        let config = self.credentials.tls()?;
        let address = (host.as_str(), uri.port_u16().unwrap_or(DEFAULT_PORT));
        let stream = TcpStream::connect(address)
            .await
            .map_err(ConnectFault::Tcp)?;
        stream.set_nodelay(true).map_err(ConnectFault::Tcp)?;
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(ConnectFault::Tls)?;
        Ok(TokioIo::new(stream))
    }
}

impl Service<Uri> for SecureConnector {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = ConnectFault;
    type Future = BoxFuture<Self::Response, ConnectFault>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), ConnectFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connected = tokio::time::timeout(self.timeout, self.clone().connect(uri));
        Box::pin(async {
            connected
                .await
                .unwrap_or_else(|_| Err(ConnectFault::Tcp(io::ErrorKind::TimedOut.into())))
        })
    }
}
