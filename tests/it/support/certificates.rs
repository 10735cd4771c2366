//! Authorities and certificates for tests, made anew in each.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

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
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &*self.issuer).unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        std::fs::write(&pair.certificate, certificate.pem()).unwrap();
    }

    pub(crate) fn pair(&self, directory: &Path, name: &str, names: &[&str]) -> Pair {
        let file = |end: &str| directory.join(format!("{name}.{end}"));
        let pair = Pair { certificate: file("crt"), key: file("key") };
        self.sign(&pair, names);
        pair
    }
}
