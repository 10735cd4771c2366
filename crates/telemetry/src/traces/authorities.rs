//! The authorities of a collector's certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// HTTP/2, the only protocol of gRPC.
const ALPN: &[u8] = b"h2";

/// The TLS of a client that trusts the authorities in the file, or those of the system.
///
/// # Errors
/// When the file has no certificate that can be used.
pub(super) fn client_config(certificate: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match certificate {
        None => {
            let of_system = rustls_native_certs::load_native_certs().certs;
            roots.add_parsable_certificates(of_system);
        }
        Some(file) => {
            let unusable = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
            let found = CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))?;
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
    Ok(Arc::new(tls))
}
