//! The credentials of a NATS client: login and certificates. Files are read for each connection, so that renewed ones
//! are used without a restart.

use std::path::PathBuf;

use async_nats::Auth;
use nkeys::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::address::{Address, Login};
use tarsy_config::{Secret, SecretError};

/// The login and the files of TLS. By default the login of the URL, and no files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    pub login: LoginSource,
    /// The file with the URL of the servers, which is read again while the connection lives.
    pub url_file: Option<Secret>,
    /// The authorities that may have signed the server's certificate; `None` represents those of the system.
    pub ca: Option<PathBuf>,
    pub certificate: Option<ClientCertificate>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LoginSource {
    /// The URL of the servers, which may have none.
    #[default]
    Url,
    /// The URL of the servers in this file.
    UrlFile(Secret),
    /// A file with the JWT of a user and the seed of its key, as `nsc` writes it.
    Credentials(Secret),
    /// The seed of a user's key.
    Nkey(Secret),
    Password {
        user: String,
        password: Secret,
    },
    Token(Secret),
}

/// The certificate that a client shows, and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Credentials {
    /// Whether a file of TLS is named, so that the connection has to use TLS.
    pub(super) fn need_tls(&self) -> bool {
        self.ca.is_some() || self.certificate.is_some()
    }

    /// Reads every file once.
    ///
    /// # Errors
    /// When one cannot be read, or has no usable content.
    pub fn check(&self) -> Result<(), SecretError> {
        self.login.auth(None, b"")?;
        if let Some(file) = &self.ca {
            certificates("NATS_CA_FILE", file)?;
        }
        if let Some(ClientCertificate { certificate, key }) = &self.certificate {
            certificates("NATS_CERT_FILE", certificate)?;
            let pem = read_pem("NATS_KEY_FILE", key)?;
            // The error of the parser names the section that it found, never its content.
            let parsed = PrivateKeyDer::from_pem_slice(&pem);
            parsed
                .map_err(|_error| pem_fault("NATS_KEY_FILE", key, "has no private key in PEM"))?;
        }
        Ok(())
    }
}

impl LoginSource {
    /// The reason why a server does not accept this login. `of_url` is the login of the URL that the process was
    /// started with.
    pub(super) fn refusal(&self, of_url: Option<&Login>) -> &'static str {
        match (self, of_url) {
            (Self::Url | Self::UrlFile(_), None) => "it asks for a login, and none is set",
            (Self::Url | Self::UrlFile(_), Some(Login::Token(_))) | (Self::Token(_), _) => {
                "the token is wrong"
            }
            (Self::Url | Self::UrlFile(_), Some(Login::Password { .. }))
            | (Self::Password { .. }, _) => "user or password is wrong",
            (Self::Credentials(_), _) => "it does not accept the user of NATS_CREDS_FILE",
            (Self::Nkey(_), _) => "it does not accept the key of NATS_NKEY_FILE",
        }
    }

    /// The answer to the server's challenge. `of_url` is the login of the URL that the process was started with.
    ///
    /// # Errors
    /// When a file cannot be read or understood.
    pub(super) fn auth(
        &self,
        of_url: Option<&Login>,
        challenge: &[u8],
    ) -> Result<Auth, SecretError> {
        let mut auth = Auth::new();
        match self {
            Self::Url => set(&mut auth, of_url.cloned()),
            Self::UrlFile(file) => {
                let parsed = Address::parse(&file.read()?);
                let parsed = parsed.map_err(|error| file.fault(&error.to_string()))?;
                set(&mut auth, parsed.login);
            }
            Self::Credentials(file) => {
                let text = file.read_lines()?;
                let jwt = block(&text, "NATS USER JWT");
                let jwt =
                    jwt.ok_or_else(|| file.fault("has no JWT of a user, as nsc writes it"))?;
                let seed = block(&text, "USER NKEY SEED");
                let seed = seed
                    .ok_or_else(|| file.fault("has no seed of a user's key, as nsc writes it"))?;
                auth.jwt = Some(jwt.to_owned());
                auth.signature = Some(sign(file, seed, challenge)?.1);
            }
            Self::Nkey(file) => {
                let (key, signature) = sign(file, &file.read()?, challenge)?;
                auth.nkey = Some(key);
                auth.signature = Some(signature);
            }
            Self::Password { user, password } => {
                auth.username = Some(user.clone());
                auth.password = Some(password.read()?);
            }
            Self::Token(token) => auth.token = Some(token.read()?),
        }
        Ok(auth)
    }

    /// The texts that may appear nowhere, as far as they can be read now.
    pub fn secrets(&self) -> Vec<String> {
        let read = match self {
            Self::Url => return Vec::new(),
            Self::Credentials(file) => {
                let text = file.read_lines().unwrap_or_default();
                let blocks = ["NATS USER JWT", "USER NKEY SEED"]
                    .map(|name| block(&text, name).map(str::to_owned));
                return blocks.into_iter().flatten().collect();
            }
            Self::UrlFile(file) | Self::Nkey(file) | Self::Token(file) => file.read(),
            Self::Password { password, .. } => password.read(),
        };
        read.into_iter().collect()
    }
}

fn set(auth: &mut Auth, login: Option<Login>) {
    match login {
        None => {}
        Some(Login::Password { user, password }) => {
            auth.username = Some(user);
            auth.password = Some(password);
        }
        Some(Login::Token(token)) => auth.token = Some(token),
    }
}

/// The public key of a seed, and its signature of the server's challenge.
fn sign(file: &Secret, seed: &str, challenge: &[u8]) -> Result<(String, Vec<u8>), SecretError> {
    let no_seed = "has no seed of a user's key: it begins with SU and has 58 characters";
    let pair = KeyPair::from_seed(seed).map_err(|_error| file.fault(no_seed))?;
    let signature = pair.sign(challenge).map_err(|_error| file.fault(no_seed))?;
    Ok((pair.public_key(), signature))
}

/// The line after `-----BEGIN <name>-----`.
fn block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| line.starts_with("---") && line.contains("BEGIN") && line.contains(name))?;
    lines
        .next()
        .filter(|line| !line.is_empty() && !line.starts_with('-'))
}

fn certificates(variable: &str, file: &PathBuf) -> Result<(), SecretError> {
    let pem = read_pem(variable, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(()),
        Ok(_) | Err(_) => Err(pem_fault(variable, file, "has no certificate in PEM")),
    }
}

fn read_pem(variable: &str, file: &PathBuf) -> Result<Vec<u8>, SecretError> {
    std::fs::read(file).map_err(|error| pem_fault(variable, file, &error.to_string()))
}

fn pem_fault(variable: &str, file: &std::path::Path, reason: &str) -> SecretError {
    SecretError {
        place: format!("{variable}: {}", file.display()),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credentials_file_has_a_token_and_a_seed_on_lines_of_their_own() {
        let pair = KeyPair::new_user();
        let seed = pair.seed().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("creds");
        let secret = Secret::file_of("NATS_CREDS_FILE", &|name: &str| {
            (name == "NATS_CREDS_FILE").then(|| path.display().to_string())
        });
        let source = LoginSource::Credentials(secret.unwrap());
        let jwt = "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n";
        let rest = format!(
            "***\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(&path, format!("{jwt}\r\n{rest}")).unwrap();
        let auth = source.auth(None, b"challenge").unwrap();
        assert_eq!(auth.jwt.as_deref(), Some("a.b.c"));
        pair.verify(b"challenge", &auth.signature.unwrap()).unwrap();
        assert_eq!(source.secrets(), ["a.b.c".to_owned(), seed.clone()]);
        for (content, expected) in [
            (
                jwt.to_owned(),
                "has no seed of a user's key, as nsc writes it",
            ),
            (rest, "has no JWT of a user, as nsc writes it"),
            (
                format!("{jwt}-----BEGIN USER NKEY SEED-----\nSUXXX\n"),
                "it begins with SU",
            ),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = source.auth(None, b"").err().unwrap().to_string();
            assert!(
                error.contains(expected) && !error.contains(&seed),
                "{error}"
            );
        }
    }

    #[test]
    fn faulty_files_of_tls_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pem");
        let missing = Credentials {
            ca: Some(file.clone()),
            ..Credentials::default()
        }
        .check()
        .unwrap_err()
        .to_string();
        assert!(
            missing.starts_with("NATS_CA_FILE: ") && missing.contains("No such file"),
            "{missing}"
        );
        std::fs::write(&file, "no pem").unwrap();
        let pair = ClientCertificate {
            certificate: file.clone(),
            key: file,
        };
        let error = Credentials {
            certificate: Some(pair),
            ..Credentials::default()
        }
        .check()
        .unwrap_err();
        assert_eq!(error.reason, "has no certificate in PEM");
    }
}
