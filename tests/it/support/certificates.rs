//! Authorities and certificates for tests, made anew in each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;

/// An authority that signs certificates, and its own in a file.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) file: PathBuf,
}

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = directory.join(format!("{name}.pem"));
        std::fs::write(&file, issuer.pem()).unwrap();
        Self { issuer, file }
    }

    /// Writes a new certificate for these host names and addresses over the files of `pair`.
    pub(crate) fn sign(&self, pair: &Pair, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &*self.issuer)
            .unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        std::fs::write(&pair.certificate, certificate.pem()).unwrap();
    }

    pub(crate) fn pair(&self, directory: &Path, name: &str, names: &[&str]) -> Pair {
        let file = |end: &str| directory.join(format!("{name}.{end}"));
        let pair = Pair {
            certificate: file("crt"),
            key: file("key"),
        };
        self.sign(&pair, names);
        pair
    }
}

/// A server's side of TLS for `localhost`, and the file of its authority in this folder.
pub(crate) fn localhost_tls(folder: &Path) -> (TlsAcceptor, PathBuf) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = folder.join("ca.pem");
    std::fs::write(&file, signed.cert.pem()).unwrap();
    let key =
        rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    (Arc::new(config).into(), file)
}
