//! The Google account of a call: from the variable that a request names, or from the machine.

use serde::Deserialize;
use tame_oauth::gcp::ServiceAccountInfo;
use url::Url;

use crate::service::provider::key::ApiKey;
use crate::service::provider::{Access, ProviderError};

/// The addresses at which keys of service accounts are exchanged for tokens. The operator may permit other addresses.
const TOKEN_ADDRESSES: [&str; 3] = [
    "https://oauth2.googleapis.com/token",
    "https://accounts.google.com/o/oauth2/token",
    "https://www.googleapis.com/oauth2/v4/token",
];
/// The variable that names another host of the metadata server; the libraries of Google read it, too.
const METADATA_VARIABLE: &str = "GCE_METADATA_HOST";
const METADATA_HOST: &str = "metadata.google.internal";
/// The variable with the project whose quota counts; the libraries of Google read it, too.
const QUOTA_VARIABLE: &str = "GOOGLE_CLOUD_QUOTA_PROJECT";
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// An account, and the project whose quota its requests count for if it is another one.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) source: Source,
    pub(super) quota_project: Option<String>,
}

/// The source of an account's tokens.
#[derive(Clone)]
pub(super) enum Source {
    /// Another program renews the token.
    Token(ApiKey),
    /// A key signs a request for a token.
    Service(ServiceAccountInfo),
    /// The metadata server of the machine or the pod has the token.
    Machine { host: String },
}

impl Account {
    /// Describes the credentials, in words without a secret.
    pub(super) fn described(&self) -> &'static str {
        match &self.source {
            Source::Token(_) => "a token that another program renews",
            Source::Service(_) => "a key of a service account",
            Source::Machine { host } if host == METADATA_HOST => {
                "the account of the machine, by the metadata server metadata.google.internal"
            }
            Source::Machine { .. } => {
                "the account of the machine, by the metadata server of GCE_METADATA_HOST"
            }
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Token(_) => "Token",
            Self::Service(_) => "Service",
            Self::Machine { .. } => "Machine",
        })
    }
}

/// The fields of a file of credentials that show its kind.
#[derive(Debug, Deserialize)]
struct CredentialsHeader {
    #[serde(rename = "type", default)]
    name: String,
    quota_project_id: Option<String>,
}

/// The account that `named` describes: a file of credentials as JSON, the path of such a file, or a token. Without
/// it, that of the machine.
///
/// # Errors
/// `credentials` when the file cannot be read, is no key of a service account, or names an address for tokens that is
/// not permitted.
pub(super) async fn load(access: &Access, named: Option<ApiKey>) -> Result<Account, ProviderError> {
    let quota_project = access.variable(QUOTA_VARIABLE);
    let Some(named) = named else {
        let host = access
            .variable(METADATA_VARIABLE)
            .unwrap_or_else(|| METADATA_HOST.to_owned());
        return Ok(Account {
            source: Source::Machine { host },
            quota_project,
        });
    };
    let text = named.expose();
    let json = match text.chars().next() {
        Some('{') => text.to_owned(),
        Some('/') => read_file(text).await?,
        Some(_) | None => {
            return Ok(Account {
                source: Source::Token(named),
                quota_project,
            });
        }
    };
    let kind: CredentialsHeader = serde_json::from_str(&json)
        .map_err(|_error| ProviderError::credentials("The credentials are no JSON"))?;
    if kind.name != "service_account" {
        return Err(ProviderError::credentials(
            "The credentials are no key of a service account; other kinds are not supported, use the metadata server",
        ));
    }
    let info = ServiceAccountInfo::deserialize(&json).map_err(|_error| {
        ProviderError::credentials(
            "The key of the service account has no private_key, client_email or token_uri",
        )
    })?;
    access.hide(&info.private_key);
    let address = Url::parse(&info.token_uri)
        .map_err(|_error| ProviderError::credentials("The token_uri is no address"))?;
    let is_known = TOKEN_ADDRESSES
        .iter()
        .any(|known| Url::parse(known).is_ok_and(|known| known == address));
    if !is_known && !access.permits(&address) {
        return Err(ProviderError::credentials(
            "The token_uri of the service account is no address of Google; permit it with --allow-base-url",
        ));
    }
    let quota_project = quota_project.or(kind.quota_project_id);
    Ok(Account {
        source: Source::Service(info),
        quota_project,
    })
}

async fn read_file(path: &str) -> Result<String, ProviderError> {
    let text = match tokio::fs::metadata(path).await {
        Ok(file) if file.is_file() && file.len() <= MAX_FILE_BYTES => {
            tokio::fs::read_to_string(path).await.ok()
        }
        Ok(_) | Err(_) => None,
    };
    let text = text.ok_or_else(|| {
        ProviderError::credentials(
            "The file of credentials cannot be read, or has more than 64 KiB",
        )
    })?;
    Ok(text.trim().to_owned())
}
