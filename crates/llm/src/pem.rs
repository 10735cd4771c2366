//! The PEM files of a TLS connection, for both of its ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A larger file has no certificates of ours.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// A file of a TLS connection cannot be used. The message never shows its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct FileError {
    pub file: PathBuf,
    pub reason: String,
}

impl FileError {
    pub(super) fn new(file: &Path, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            reason: reason.into(),
        }
    }
}

/// The only provider of cryptography in this program.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

/// The content of a file of at most 4 MiB.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, FileError> {
    let size = std::fs::metadata(file)
        .map_err(|error| FileError::new(file, error.to_string()))?
        .len();
    if size > MAX_FILE_BYTES {
        return Err(FileError::new(
            file,
            format!("has {size} bytes; at most 4 MiB are read"),
        ));
    }
    std::fs::read(file).map_err(|error| FileError::new(file, error.to_string()))
}

/// The certificates of a PEM file, at least one.
///
/// # Errors
/// When the text has none, or a malformed one.
pub(super) fn certificates(
    file: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates
        .map_err(|error| FileError::new(file, format!("no certificate in PEM: {error}")))?;
    if certificates.is_empty() {
        return Err(FileError::new(file, "has no certificate in PEM"));
    }
    Ok(certificates)
}

/// The authorities of a PEM file.
///
/// # Errors
/// When the text has none, or one that cannot be an authority.
pub(super) fn authorities(file: &Path, pem: &[u8]) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file, pem)? {
        roots
            .add(certificate)
            .map_err(|error| FileError::new(file, error.to_string()))?;
    }
    Ok(roots)
}

/// The private key of a PEM file.
///
/// # Errors
/// When the text has none.
pub(super) fn key(file: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, FileError> {
    // The error of the parser names the section that it found, never its content.
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|_error| FileError::new(file, "has no private key in PEM"))
}
