//! TLS connections for gRPC, whose clients choose authorities and certificates.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::http::Uri;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const DEFAULT_PORT: u16 = 443;

/// The reason for a failed connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFault {
    #[error("{0}")]
    Tcp(io::Error),
    #[error("{0}")]
    Tls(io::Error),
    #[error("'{0}' is no host that a certificate can name")]
    Host(String),
}

/// Opens a connection. The time limit is for TCP and the handshake together.
///
/// # Errors
/// When there is no connection, or the handshake fails.
pub async fn connect(
    uri: Uri,
    config: Arc<ClientConfig>,
    timeout: Duration,
) -> Result<TokioIo<TlsStream<TcpStream>>, ConnectFault> {
    let connected = tokio::time::timeout(timeout, connect_to(uri, config)).await;
    connected.unwrap_or_else(|_elapsed| Err(ConnectFault::Tcp(io::ErrorKind::TimedOut.into())))
}

async fn connect_to(
    uri: Uri,
    config: Arc<ClientConfig>,
) -> Result<TokioIo<TlsStream<TcpStream>>, ConnectFault> {
    let host = uri
        .host()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let name =
        ServerName::try_from(host.clone()).map_err(|_error| ConnectFault::Host(host.clone()))?;
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
