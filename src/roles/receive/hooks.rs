//! The proofs of the sources, from the configuration. Secrets in files are read again while the receiver runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use hyper::header::HeaderName;

use super::token::READ_INTERVAL;
use tarsy_config::{Config, Env, Secret, SecretError, SecretSource, SourceAuth, environment_fault};
use tarsy_http::listener::Token;
use tarsy_receiver::proof::sns::{self, Certificates, Confirm, Sns, Topic};
use tarsy_receiver::proof::{Hmac, HmacKeys, Proof};

/// A shorter token in a path could be guessed.
const MIN_PATH_TOKEN_BYTES: usize = 16;

/// The paths of the sources.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    pub(super) proofs: BTreeMap<String, Proof>,
    pub(super) renewals: Vec<Renewal>,
}

/// Secrets in files, and what they become.
#[derive(Debug)]
pub(super) struct Renewal {
    /// The source, or the key of the configuration, for logs.
    source: String,
    secrets: Vec<Secret>,
    target: Target,
}

#[derive(Clone, Debug)]
enum Target {
    Token { token: Token, place: TokenLocation },
    Keys(HmacKeys),
}

/// The place in which clients send a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenLocation {
    Header,
    Path,
}

impl Hooks {
    /// The proofs of all sources.
    ///
    /// # Errors
    /// When a secret cannot be read, or no client could send it. The error does not show its value.
    pub(super) fn from_config(config: &Config, env: Env<'_>) -> anyhow::Result<Self> {
        let mut hooks = Self::default();
        let certificates = certificates()?;
        for source in config.sources.all().iter() {
            let proof = match config.sources.auth(&source.name) {
                None => Proof::OfReceiver,
                Some(auth) => hooks.proof(
                    &source.name,
                    auth,
                    &ProofReader {
                        env,
                        certificates: &certificates,
                    },
                )?,
            };
            hooks.proofs.insert(source.name.clone(), proof);
        }
        Ok(hooks)
    }

    fn proof(
        &mut self,
        source: &str,
        auth: &SourceAuth,
        reading: &ProofReader<'_>,
    ) -> anyhow::Result<Proof> {
        Ok(match auth {
            SourceAuth::Receiver => Proof::OfReceiver,
            SourceAuth::Token(secret) => {
                Proof::Token(self.token(source, secret, TokenLocation::Header, reading)?)
            }
            SourceAuth::Path(secret) => {
                Proof::InPath(self.token(source, secret, TokenLocation::Path, reading)?)
            }
            SourceAuth::Header { name, secret } => {
                let name = header(name)?;
                Proof::InHeader {
                    name,
                    token: self.token(source, secret, TokenLocation::Header, reading)?,
                }
            }
            SourceAuth::HmacSha256 {
                header: signatures,
                prefix,
                secrets,
                time_header,
            } => {
                let secrets: Vec<Secret> = secrets
                    .iter()
                    .map(|secret| reading.place(source, secret))
                    .collect::<Result<_, _>>()?;
                let keys = HmacKeys::new(&read(source, &secrets)?);
                self.renewals.push(Renewal {
                    source: source.to_owned(),
                    secrets,
                    target: Target::Keys(keys.clone()),
                });
                Proof::Hmac(Hmac {
                    header: header(signatures)?,
                    prefix: prefix.clone(),
                    time_header: time_header.as_deref().map(header).transpose()?,
                    keys,
                })
            }
            SourceAuth::Sns { topics, confirm } => Proof::Sns(Box::new(Sns {
                topics: topics
                    .iter()
                    .map(|arn| topic(source, arn))
                    .collect::<Result<_, _>>()?,
                confirm: if *confirm {
                    Confirm::AtOnce
                } else {
                    Confirm::ByHand
                },
                certificates: Arc::clone(reading.certificates),
            })),
        })
    }

    fn token(
        &mut self,
        source: &str,
        secret: &SecretSource,
        place: TokenLocation,
        reading: &ProofReader<'_>,
    ) -> anyhow::Result<Token> {
        let secret = reading.place(source, secret)?;
        let text = secret.read().map_err(|error| unreadable(source, &error))?;
        let token = match Token::new(&text) {
            Some(token) if place.accepts(&text) => token,
            Some(_) | None => return Err(unreadable(source, &secret.fault(place.problem()))),
        };
        self.renewals.push(Renewal {
            source: source.to_owned(),
            secrets: vec![secret],
            target: Target::Token {
                token: token.clone(),
                place,
            },
        });
        Ok(token)
    }
}

/// The context for reading the configuration.
struct ProofReader<'a> {
    env: Env<'a>,
    certificates: &'a Arc<Certificates>,
}

impl ProofReader<'_> {
    fn place(&self, source: &str, secret: &SecretSource) -> anyhow::Result<Secret> {
        match secret {
            SecretSource::File(file) => {
                Ok(Secret::in_file(&format!("sources.{source}.auth"), file))
            }
            SecretSource::Variable(name) => Secret::find(name, self.env)?.ok_or_else(|| {
                let problem = format!(
                    "is not set, and sources.{source}.auth names it; accepted: it or {name}_FILE"
                );
                environment_fault(name, problem).into()
            }),
        }
    }
}

impl TokenLocation {
    fn accepts(self, token: &str) -> bool {
        // A path may have other characters only in an encoded form.
        let fits_path = token.len() >= MIN_PATH_TOKEN_BYTES
            && token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
        self == Self::Header || fits_path
    }

    fn problem(self) -> &'static str {
        match self {
            Self::Header => {
                "has spaces or letters beyond ASCII; accepted: visible ASCII characters"
            }
            Self::Path => {
                "is no token for a path; accepted: at least 16 letters, digits, -, ., _ or ~"
            }
        }
    }
}

impl Renewal {
    /// The renewal of signing secrets.
    pub(super) fn of_keys(source: &str, secrets: Vec<Secret>, keys: &HmacKeys) -> Self {
        Self {
            source: source.to_owned(),
            secrets,
            target: Target::Keys(keys.clone()),
        }
    }

    /// Reads the secrets again.
    fn renew(&self) -> Result<(), String> {
        let texts = self
            .secrets
            .iter()
            .map(Secret::read)
            .collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| error.to_string())?;
        match (&self.target, texts.as_slice()) {
            (Target::Token { token, place }, [text])
                if place.accepts(text) && token.renew(text) =>
            {
                Ok(())
            }
            (Target::Token { place, .. }, _) => Err(place.problem().to_owned()),
            (Target::Keys(keys), texts) => {
                keys.renew(texts);
                Ok(())
            }
        }
    }
}

/// Reads the files of secrets again and again, so that renewed ones are accepted without a restart.
pub(super) async fn keep_up(renewals: Vec<Renewal>) -> Infallible {
    let mut of_files: Vec<(Renewal, Option<String>)> = Vec::new();
    of_files.extend(
        renewals
            .into_iter()
            .filter(|r| r.secrets.iter().any(Secret::is_file))
            .map(|r| (r, None)),
    );
    if of_files.is_empty() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        for (renewal, last_fault) in &mut of_files {
            let fault = renewal.renew().err();
            if let Some(fault) = &fault
                && last_fault.as_ref() != Some(fault)
            {
                tracing::error!(
                    source = renewal.source,
                    fault,
                    "secret of a source not reloaded: the previous one stays in use"
                );
            }
            *last_fault = fault;
        }
    }
}

fn read(source: &str, secrets: &[Secret]) -> anyhow::Result<Vec<String>> {
    secrets
        .iter()
        .map(|secret| secret.read().map_err(|error| unreadable(source, &error)))
        .collect()
}

fn unreadable(source: &str, error: &SecretError) -> anyhow::Error {
    let problem = format!("{} (sources.{source}.auth)", error.reason);
    environment_fault(&error.place, problem).into()
}

fn topic(source: &str, arn: &str) -> anyhow::Result<Topic> {
    Topic::parse(arn).ok_or_else(|| {
        anyhow::anyhow!("sources.{source}.auth.sns.topics: {arn:?} is not the ARN of a topic")
    })
}

fn header(name: &str) -> anyhow::Result<HeaderName> {
    Ok(HeaderName::from_bytes(name.as_bytes())?)
}

/// Requests certificates of SNS, once a source needs one.
fn certificates() -> anyhow::Result<Arc<Certificates>> {
    Ok(Arc::new(Certificates::new(sns::client()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(yaml: &str, env: Env<'_>) -> Result<Hooks, String> {
        let config = Config::parse("tarsy.yaml", yaml, env).map_err(|faults| faults.to_string())?;
        Hooks::from_config(&config, env).map_err(|error| error.to_string())
    }

    fn source(auth: &str) -> String {
        format!("sources: {{shop: {{type: /name, key: [/id], auth: {auth}}}}}\n")
    }

    #[test]
    fn a_source_without_auth_asks_for_the_token_of_the_receiver() {
        let hooks = hooks("{}", &|_| None).unwrap();
        assert!(matches!(hooks.proofs["pagerduty"], Proof::OfReceiver));
        assert!(
            ["alertmanager", "grafana"]
                .iter()
                .all(|name| hooks.proofs.contains_key(*name))
        );
        assert!(hooks.renewals.is_empty());
    }

    fn unusable_secrets(name: &str) -> Option<String> {
        match name {
            "SPACE" => Some("a b".to_owned()),
            "SHORT" => Some("sh0rt".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn a_secret_that_is_missing_or_cannot_be_sent_is_refused_without_its_value() {
        for (auth, word) in [
            ("{bearer: {secret_env: NONE}}", "NONE"),
            ("{bearer: {secret_env: SPACE}}", "visible ASCII"),
            ("{path: {secret_env: SHORT}}", "at least 16"),
            (
                "{path: {secret_file: /no/such/file}}",
                "there is no such file",
            ),
            ("{hmac_sha256: {header: X-S, secret_env: NONE}}", "NONE"),
        ] {
            let error = hooks(&source(auth), &unusable_secrets).unwrap_err();
            assert!(
                error.contains(word) && error.contains("sources.shop.auth"),
                "{auth}: {error}"
            );
            assert!(
                !error.contains("a b") && !error.contains("sh0rt"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_secret_in_a_file_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        std::fs::write(&file, "first-t0ken-of-16-bytes\n").unwrap();
        let auth = format!("{{path: {{secret_file: {}}}}}", file.display());
        let hooks = hooks(&source(&auth), &|_| None).unwrap();
        let Proof::InPath(token) = &hooks.proofs["shop"] else {
            panic!("{hooks:?}")
        };
        assert!(token.is("first-t0ken-of-16-bytes"));
        let [renewal] = hooks.renewals.as_slice() else {
            panic!("{hooks:?}")
        };
        std::fs::write(&file, "short").unwrap();
        assert!(renewal.renew().unwrap_err().contains("at least 16"));
        assert!(
            token.is("first-t0ken-of-16-bytes"),
            "the last one stays in use"
        );
        std::fs::write(&file, "second-t0ken-of-16-bytes").unwrap();
        assert_eq!(renewal.renew(), Ok(()));
        assert!(token.is("second-t0ken-of-16-bytes"));
    }
}
