//! TLS of the listener, with files that may change while it listens.

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::pem::{self, FileError};

/// HTTP/2, the only protocol of gRPC.
const ALPN: &[u8] = b"h2";

/// The files of a listener with TLS, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the service, followed by those of its issuers.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authorities whose certificates clients have to show; `None` asks for none.
    pub client_ca: Option<PathBuf>,
}

/// TLS with the files as they were read last.
#[derive(Debug)]
pub(in crate::service) struct ServerTls {
    files: TlsFiles,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// The hash of the contents that were tried last, or the fault that kept them from being read.
    tried: Result<[u8; 32], FileError>,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Current").finish_non_exhaustive()
    }
}

impl ServerTls {
    pub(super) fn load(files: TlsFiles) -> Result<Self, FileError> {
        let contents = Contents::read(&files)?;
        let current = Current {
            config: contents.config(&files)?,
            tried: Ok(contents.hash()),
        };
        Ok(Self {
            files,
            current: Mutex::new(current),
        })
    }

    pub(super) fn asks_for_certificates(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Accepts connections with the newest good files.
    pub(in crate::service) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.current.lock().config).into()
    }

    pub(super) fn reload(&self) {
        let contents = Contents::read(&self.files);
        let tried = contents
            .as_ref()
            .map(Contents::hash)
            .map_err(FileError::clone);
        let mut current = self.current.lock();
        if current.tried == tried {
            return;
        }
        // A fault is kept as well, so that it is logged once and not at each read.
        current.tried = tried;
        match contents.and_then(|contents| contents.config(&self.files)) {
            Ok(config) => {
                current.config = config;
                tracing::info!("certificates reloaded: new connections use them");
            }
            Err(fault) => {
                tracing::error!(%fault, "certificates not read again: the last ones stay in use")
            }
        }
    }
}

/// The bytes of the files.
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, FileError> {
        Ok(Self {
            client_ca: files.client_ca.as_deref().map(pem::read).transpose()?,
            certificate: pem::read(&files.certificate)?,
            key: pem::read(&files.key)?,
        })
    }

    fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for bytes in [&self.certificate, &self.key]
            .into_iter()
            .chain(&self.client_ca)
        {
            hash.update(Sha256::digest(bytes));
        }
        hash.finalize().into()
    }

    fn config(&self, files: &TlsFiles) -> Result<Arc<ServerConfig>, FileError> {
        let of_certificate =
            |error: rustls::Error| FileError::new(&files.certificate, error.to_string());
        let builder = ServerConfig::builder_with_provider(pem::provider())
            .with_safe_default_protocol_versions()
            .map_err(of_certificate)?;
        let builder = match files.client_ca.as_deref().zip(self.client_ca.as_deref()) {
            None => builder.with_no_client_auth(),
            Some((file, pem)) => {
                let roots = Arc::new(pem::authorities(file, pem)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, pem::provider())
                    .build()
                    .map_err(|error| FileError::new(file, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let certificates = pem::certificates(&files.certificate, &self.certificate)?;
        let key = pem::key(&files.key, &self.key)?;
        let mut config = builder
            .with_single_cert(certificates, key)
            .map_err(of_certificate)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Arc::new(config))
    }
}
