//! Connects to a collector with TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::Uri;
use tonic::codegen::{BoxFuture, Service};

const DEFAULT_PORT: u16 = 443;
/// HTTP/2, the only protocol of gRPC.
const ALPN: &[u8] = b"h2";

/// Opens connections with TLS.
#[derive(Clone, Debug)]
pub(super) struct SecureConnector {
    tls: Arc<ClientConfig>,
    /// The time limit for TCP and the handshake together.
    timeout: Duration,
}

impl SecureConnector {
    /// Trusts the authorities in the file, or those of the system.
    ///
    /// # Errors
    /// When the file has no certificate that can be used.
    pub(super) fn new(certificate: Option<&Path>, timeout: Duration) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match certificate {
            None => drop(
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
            ),
            Some(file) => {
                let unusable =
                    |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
                let found =
                    CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))?;
                for certificate in found {
                    let certificate = certificate.map_err(|error| unusable(&error))?;
                    roots.add(certificate).map_err(|error| unusable(&error))?;
                }
                if roots.is_empty() {
                    return Err(unusable(&"no certificate in PEM"));
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self {
            tls: Arc::new(tls),
            timeout,
        })
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
        let host = uri
            .host()
            .unwrap_or_default()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let stream =
            TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(DEFAULT_PORT))).await?;
        stream.set_nodelay(true)?;
        Ok(TokioIo::new(
            TlsConnector::from(self.tls).connect(name, stream).await?,
        ))
    }
}

impl Service<Uri> for SecureConnector {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = BoxFuture<Self::Response, io::Error>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connected = tokio::time::timeout(self.timeout, self.clone().connect(uri));
        Box::pin(async {
            connected
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        })
    }
}
