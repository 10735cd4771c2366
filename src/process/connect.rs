//! Connects roles and commands to the broker and the database.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;

use super::people;
use tarsy_bus::{ConnectRetry, Nats, NatsCredentials, Options, PeopleStream, TopologySettings};
use tarsy_config::{Config, Env, Faults, Secret, environment_fault};
use tarsy_http::outgoing::token::TokenSource;
use tarsy_llm::client::{Client, ClientCertificate, Credentials};
use tarsy_store::{ConnectOptions, Error, Schema, Secrets, check_for_worker};

/// The addresses of the servers.
#[derive(Clone)]
pub struct Addresses {
    /// NATS servers, separated by commas.
    pub nats_url: String,
    pub database_url: Option<String>,
    /// The LLM service, as host:port, or https://host:port.
    pub llm_addr: String,
    /// The credentials that the LLM service asks its clients for.
    pub llm_credentials: Credentials,
    pub nats_credentials: NatsCredentials,
    pub database_secrets: Secrets,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses")
            .field("llm_addr", &self.llm_addr)
            .finish_non_exhaustive()
    }
}

/// An address that is missing or invalid: retrying cannot help. The message never contains the address, which may
/// contain a password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadAddress(pub String);

/// The default address of the broker.
pub const LOCAL_NATS: &str = "nats://127.0.0.1:4222";

/// An address, and the file that it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenAddress {
    pub text: Option<String>,
    pub file: Option<Secret>,
}

/// The given address, else the content of the file that `<variable>_FILE` names.
///
/// # Errors
/// When both variables are set, or the file cannot be read. The error contains no address.
pub fn from_file(
    given: Option<String>,
    variable: &str,
    env: Env<'_>,
) -> Result<GivenAddress, Faults> {
    let name = format!("{variable}_FILE");
    let Some(file) = Secret::file_of(&name, env) else {
        return Ok(GivenAddress {
            text: given,
            file: None,
        });
    };
    if env(variable).is_some() {
        let problem = format!("is set, and {variable} as well; accepted: only one of them");
        return Err(environment_fault(&name, problem));
    }
    if given.is_some() {
        return Ok(GivenAddress {
            text: given,
            file: None,
        });
    }
    let text = file
        .read()
        .map_err(|error| environment_fault(&name, error.to_string()))?;
    Ok(GivenAddress {
        text: Some(text),
        file: Some(file),
    })
}

/// The variable with the token of the LLM service, for the service and for its clients.
pub(crate) const LLM_TOKEN: &str = "TARSY_LLM_TOKEN";
/// The variable with the file of the token.
pub(crate) const LLM_TOKEN_FILE: &str = "TARSY_LLM_TOKEN_FILE";
const LLM_CA_FILE: &str = "TARSY_LLM_CA_FILE";
const LLM_CERT_FILE: &str = "TARSY_LLM_CERT_FILE";
const LLM_KEY_FILE: &str = "TARSY_LLM_KEY_FILE";

/// The variables from which [`llm_credentials`] reads.
pub const LLM_CREDENTIALS: [&str; 5] = [
    LLM_TOKEN,
    LLM_TOKEN_FILE,
    LLM_CA_FILE,
    LLM_CERT_FILE,
    LLM_KEY_FILE,
];

/// The token of the LLM service.
///
/// # Errors
/// When both variables are set.
pub fn llm_token(env: Env<'_>) -> Result<Option<TokenSource>, Faults> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let source = match (set(LLM_TOKEN), set(LLM_TOKEN_FILE)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let problem =
                format!("is set, and {LLM_TOKEN_FILE} as well; accepted: only one of them");
            return Err(environment_fault(LLM_TOKEN, problem));
        }
        (Some(text), None) => TokenSource::Value(text),
        (None, Some(file)) => TokenSource::File(file.into()),
    };
    Ok(Some(source))
}

/// The credentials of a client of the LLM service. The files are not read yet.
///
/// # Errors
/// When a variable is set without another one that it needs, or beside one that it excludes.
pub fn llm_credentials(env: Env<'_>) -> Result<Credentials, Faults> {
    let file = |name: &str| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let certificate = match (file(LLM_CERT_FILE), file(LLM_KEY_FILE)) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key }),
        (Some(_), None) => {
            return Err(environment_fault(
                LLM_CERT_FILE,
                format!("needs {LLM_KEY_FILE} as well"),
            ));
        }
        (None, Some(_)) => {
            return Err(environment_fault(
                LLM_KEY_FILE,
                format!("needs {LLM_CERT_FILE} as well"),
            ));
        }
    };
    Ok(Credentials {
        token: llm_token(env)?,
        ca: file(LLM_CA_FILE),
        certificate,
    })
}

const DATABASE_RETRY_INTERVAL: Duration = Duration::from_secs(3);
/// Short, because a person waits for the command.
pub(super) const COMMAND_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl Addresses {
    /// Connects a command to the broker; gives up after a few seconds.
    ///
    /// # Errors
    /// When no server answers, or the server is too old.
    pub async fn nats_for_command(&self, role: &str) -> anyhow::Result<Nats> {
        self.nats(role, ConnectRetry::UpTo(COMMAND_CONNECT_TIMEOUT), &|_| {})
            .await
    }

    /// Connects a role to the broker; retries until a server accepts it. `report` gets the error of each failed try.
    ///
    /// # Errors
    /// When the server is too old, or the address or the credentials cannot be read.
    pub async fn nats_for_role(
        &self,
        role: &str,
        report: &(dyn Fn(&tarsy_bus::Error) + Sync),
    ) -> anyhow::Result<Nats> {
        self.nats(role, ConnectRetry::Forever, report).await
    }

    async fn nats(
        &self,
        role: &str,
        retry: ConnectRetry,
        report: &(dyn Fn(&tarsy_bus::Error) + Sync),
    ) -> anyhow::Result<Nats> {
        let credentials = self.nats_credentials.clone();
        let options = Options {
            url: self.nats_url.clone(),
            role: role.to_owned(),
            credentials,
            retry,
        };
        Ok(Nats::connect_reporting(&options, report).await?)
    }

    /// A client of the LLM service, which connects when it is used.
    ///
    /// # Errors
    /// [`BadAddress`] when the address is malformed or does not fit the credentials, or one of their files cannot be
    /// used.
    pub fn llm(&self) -> Result<Client, BadAddress> {
        self.llm_credentials
            .check()
            .map_err(|error| BadAddress(format!("credentials for the LLM service: {error}")))?;
        let client = Client::with_credentials(&self.llm_addr, self.llm_credentials.clone());
        client.map_err(|error| BadAddress(error.to_string()))
    }

    /// The options for a connection to the database.
    ///
    /// # Errors
    /// [`BadAddress`] when no database is named.
    pub fn database(&self, application_name: &str) -> anyhow::Result<ConnectOptions> {
        let url = self
            .database_url
            .as_deref()
            .filter(|url| !url.trim().is_empty());
        let Some(url) = url else {
            bail!(BadAddress(
                "no database: set DATABASE_URL or --database-url".to_owned()
            ));
        };
        Ok(ConnectOptions {
            application_name: application_name.to_owned(),
            secrets: self.database_secrets.clone(),
            ..ConnectOptions::new(url)
        })
    }
}

/// Waits until the database is available and has a schema that this version may use.
///
/// # Errors
/// When the schema is another version's, the role lacks rights, the address cannot be read, or the server refuses it.
pub async fn wait_for_schema(options: &ConnectOptions) -> anyhow::Result<()> {
    loop {
        match check_for_worker(options).await {
            Ok(Schema::Current) => return Ok(()),
            Ok(Schema::Newer(version)) => {
                tracing::info!(
                    version,
                    "database schema newer: it may be used with this version"
                );
                return Ok(());
            }
            Err(error) if error.is_configuration() => bail!(error),
            // Retrying cannot help.
            Err(
                error @ (Error::SchemaBehind(_)
                | Error::SchemaTooNew(_)
                | Error::NoMigrations
                | Error::NotAllowed { .. }
                | Error::SettingsLost),
            ) => bail!(error),
            Err(error) => {
                tracing::warn!(%error, fix = error.fix(), "database unavailable: retrying")
            }
        }
        tokio::time::sleep(DATABASE_RETRY_INTERVAL).await; // pacing of retries
    }
}

/// The settings of streams and consumers for a configuration.
pub fn topology(config: &Config) -> TopologySettings {
    TopologySettings {
        streams: config.streams.clone(),
        ack_wait: config.worker.lease,
        people: if people::take_part(config) {
            PeopleStream::Needed
        } else {
            PeopleStream::Unused
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_credentials_of_the_llm_service_are_whole_and_readable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file").display().to_string();
        let file = path.as_str();
        std::fs::write(file, "s3cret-1\n").unwrap();
        let read = |set: &[(&str, &str)]| {
            let llm_credentials = llm_credentials(&|name| {
                let (_, value) = set.iter().find(|(known, _)| *known == name)?;
                Some((*value).to_owned())
            });
            let addresses = Addresses {
                nats_url: String::new(),
                database_url: None,
                llm_addr: "https://llm:50051".to_owned(),
                llm_credentials: llm_credentials.map_err(|faults| faults.to_string())?,
                nats_credentials: Default::default(),
                database_secrets: Default::default(),
            };
            addresses.llm().map_err(|error| error.to_string())?;
            Ok::<_, String>(addresses.llm_credentials)
        };
        assert_eq!(
            read(&[(LLM_TOKEN, ""), (LLM_CA_FILE, "")]),
            Ok(Credentials::default())
        );
        assert_eq!(
            read(&[(LLM_TOKEN, "t-1")]).unwrap().token,
            Some(TokenSource::Value("t-1".to_owned()))
        );
        assert_eq!(
            read(&[(LLM_TOKEN_FILE, file)]).unwrap().token,
            Some(TokenSource::File(file.into()))
        );
        for (set, expected) in [
            (
                [(LLM_TOKEN, "t-1"), (LLM_TOKEN_FILE, file)],
                "TARSY_LLM_TOKEN_FILE as well",
            ),
            (
                [(LLM_TOKEN, "s3cret two"), ("X", "")],
                "is empty or has spaces",
            ),
            (
                [(LLM_TOKEN_FILE, "/no/such/file"), ("X", "")],
                "/no/such/file",
            ),
            (
                [(LLM_CERT_FILE, file), ("X", "")],
                "needs TARSY_LLM_KEY_FILE",
            ),
            (
                [(LLM_KEY_FILE, file), ("X", "")],
                "needs TARSY_LLM_CERT_FILE",
            ),
            (
                [(LLM_CA_FILE, file), ("X", "")],
                "has no certificate in PEM",
            ),
            (
                [(LLM_CERT_FILE, file), (LLM_KEY_FILE, file)],
                "has no certificate in PEM",
            ),
        ] {
            let fault = read(&set).unwrap_err();
            assert!(
                fault.contains(expected) && !fault.contains("s3cret"),
                "{fault}"
            );
        }
    }

    #[test]
    fn an_address_comes_from_a_file_or_a_variable_but_not_from_both() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("url").display().to_string();
        std::fs::write(&file, "postgres://u:w0rd@h/d\n").unwrap();
        let named = |name: &str| (name == "DATABASE_URL_FILE").then(|| file.clone());
        let read = |given: Option<&str>| {
            from_file(given.map(str::to_owned), "DATABASE_URL", &named)
                .unwrap()
                .text
        };
        assert_eq!(read(None).as_deref(), Some("postgres://u:w0rd@h/d"));
        assert_eq!(
            read(Some("postgres://option")).as_deref(),
            Some("postgres://option")
        );
        let given = "postgres://x".to_owned();
        let fault = from_file(Some(given.clone()), "DATABASE_URL", &|name| {
            named(name).or_else(|| (name == "DATABASE_URL").then(|| given.clone()))
        })
        .unwrap_err()
        .to_string();
        assert!(
            fault.contains("DATABASE_URL_FILE") && fault.contains("DATABASE_URL as well"),
            "{fault}"
        );
        let fault = from_file(None, "NATS_URL", &|name| {
            (name == "NATS_URL_FILE").then(|| "/no/such/file".to_owned())
        })
        .unwrap_err()
        .to_string();
        assert!(fault.contains("/no/such/file"), "{fault}");
    }
}
