//! TLS for servers of tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;

/// A certificate for localhost, and the file of its authority in this folder.
pub(crate) fn certificate(folder: &Path) -> (TlsAcceptor, PathBuf) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = folder.join("ca.pem");
    std::fs::write(&file, signed.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![signed.cert.der().clone()], key).unwrap();
    (Arc::new(config).into(), file)
}
