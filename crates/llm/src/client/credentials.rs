//! The credentials of a client of the LLM service: TLS files and the bearer token.
//!
//! The files are read when a connection or a call begins, so that renewed ones are used without a restart.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tonic::metadata::AsciiMetadataValue;

use crate::pem::{self, FileError};
use crate::token::tokens;
use tarsy_http::outgoing::token::TokenSource;
use tarsy_mask::Mask;

/// HTTP/2, the only protocol of gRPC.
const ALPN: &[u8] = b"h2";

/// The credentials of a client of the LLM service. The default has neither a token nor files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    pub token: Option<TokenSource>,
    /// The authorities that may have signed the service's certificate; `None` represents those of the system.
    pub ca: Option<PathBuf>,
    pub certificate: Option<ClientCertificate>,
}

/// The certificate that a client shows, and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Credentials {
    /// Whether a file of TLS is named, so that the connection has to use TLS.
    pub(crate) fn has_tls_files(&self) -> bool {
        self.ca.is_some() || self.certificate.is_some()
    }

    /// Reads the files once, to find faults.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn check(&self) -> Result<(), FileError> {
        self.bearer(&Mask::default())?;
        if self.has_tls_files() {
            self.tls().map(drop)
        } else {
            Ok(())
        }
    }

    /// The value of the header `authorization`; the mask hides its token from now on.
    pub(super) fn bearer(&self, mask: &Mask) -> Result<Option<AsciiMetadataValue>, FileError> {
        let Some(source) = &self.token else {
            return Ok(None);
        };
        let tokens = tokens(source)?;
        mask.learn(tokens.iter().cloned());
        let mut value = tokens
            .first()
            .and_then(|token| AsciiMetadataValue::try_from(format!("Bearer {token}")).ok());
        if let Some(value) = &mut value {
            value.set_sensitive(true);
        }
        Ok(value)
    }

    /// The TLS of a new connection.
    pub(super) fn tls(&self) -> Result<Arc<ClientConfig>, FileError> {
        let unusable = |error: rustls::Error| FileError {
            file: self
                .certificate
                .as_ref()
                .map(|files| files.certificate.clone())
                .unwrap_or_default(),
            reason: error.to_string(),
        };
        let identity = match &self.certificate {
            None => None,
            Some(ClientCertificate { certificate, key }) => {
                let certificates = pem::certificates(certificate, &pem::read(certificate)?)?;
                Some((certificates, pem::key(key, &pem::read(key)?)?))
            }
        };
        let roots = match &self.ca {
            Some(file) => pem::authorities(file, &pem::read(file)?)?,
            None => system_roots()?,
        };
        let builder = ClientConfig::builder_with_provider(pem::provider())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificates, key)) => builder
                .with_client_auth_cert(certificates, key)
                .map_err(unusable)?,
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Arc::new(config))
    }
}

/// The authorities of the system, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
fn system_roots() -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added > 0 {
        return Ok(roots);
    }
    Err(FileError {
        file: PathBuf::from("certificate authorities of the system"),
        reason: "none found: set TARSY_LLM_CA_FILE".to_owned(),
    })
}
