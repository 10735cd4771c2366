//! Checks the service, and distinguishes a wrong setting from an outage.

use std::error::Error;

use tonic::codegen::http::header::WWW_AUTHENTICATE;
use tonic::{Code, ConnectError, Response, Status};
use tonic_health::pb::HealthCheckResponse;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::pem::FileError;
use tarsy_http::outgoing::tls::ConnectFault;

/// The reason why the service cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceFault {
    /// No connection, or no answer.
    #[error("{0}")]
    Unavailable(String),
    /// The connection ended before the answer. A service with TLS does this to a client without.
    #[error("the connection broke: {0}")]
    Broke(String),
    /// The service is shutting down.
    #[error("not serving")]
    NotServing,
    /// The server knows neither the health check nor a call of a model.
    #[error(
        "it has no health check ({HEALTH_CHECK}), and it does not know the calls of an LLM service"
    )]
    NoService,
    /// One side does not accept the certificate of the other, or only one side uses TLS.
    #[error("TLS: {0}")]
    Tls(String),
    /// A file of the credentials cannot be used.
    #[error("{0}")]
    File(FileError),
    #[error("the service asks for a token, and none is set here")]
    TokenMissing,
    #[error("the service does not accept the token that is set here")]
    TokenRefused,
}

impl ServiceFault {
    /// The change that repairs the fault.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Unavailable(_) | Self::NotServing | Self::NoService => {
                "tarsy llm-service, or set TARSY_LLM_ADDR"
            }
            Self::Broke(_) => {
                "if the service uses TLS, write https:// into TARSY_LLM_ADDR and set TARSY_LLM_CA_FILE"
            }
            Self::Tls(text) if text.contains("InvalidContentType") || text.contains("eof") => {
                "the service does not use TLS: set llm_service.tls there, or leave out https:// in TARSY_LLM_ADDR"
            }
            Self::Tls(text) if text.contains("CertificateRequired") => {
                "set TARSY_LLM_CERT_FILE and TARSY_LLM_KEY_FILE to a certificate of llm_service.tls.client_ca"
            }
            Self::Tls(text) if text.contains(ALERT) => {
                "set TARSY_LLM_CERT_FILE to a certificate that an authority in llm_service.tls.client_ca has signed"
            }
            Self::Tls(_) => {
                "set TARSY_LLM_CA_FILE to the authority of llm_service.tls.certificate, and use a name in it"
            }
            Self::File(_) => "correct the file",
            Self::TokenMissing | Self::TokenRefused => {
                "set TARSY_LLM_TOKEN or TARSY_LLM_TOKEN_FILE as the service has it"
            }
        }
    }

    /// Whether the fault lasts until a setting or a file changes.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Tls(_) | Self::File(_) | Self::TokenMissing | Self::TokenRefused => true,
            Self::Unavailable(_) | Self::Broke(_) | Self::NotServing | Self::NoService => false,
        }
    }
}

/// The name of the health check, which some services do not have.
pub const HEALTH_CHECK: &str = "grpc.health.v1";

/// The result of a health check of a usable service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Serving,
    /// The service has no health check: a call shows whether it works.
    NoHealthCheck,
}

/// Interprets the result of a health check; `sent_token` is whether it had a token.
pub(super) fn of_health(
    checked: Result<Response<HealthCheckResponse>, Status>,
    sent_token: SentToken,
) -> Result<Health, ServiceFault> {
    let answer = match checked {
        Ok(answer) => answer,
        Err(status) if is_unknown_call(&status) => return Ok(Health::NoHealthCheck),
        Err(status) => return Err(of_status(&status)),
    };
    if answer.metadata().contains_key(WWW_AUTHENTICATE.as_str()) {
        return Err(match sent_token {
            SentToken::No => ServiceFault::TokenMissing,
            SentToken::Yes => ServiceFault::TokenRefused,
        });
    }
    if answer.into_inner().status() == ServingStatus::Serving {
        Ok(Health::Serving)
    } else {
        Err(ServiceFault::NotServing)
    }
}

/// Whether the service has answered that it does not know what was called.
pub(super) fn is_unknown_call(status: &Status) -> bool {
    status.code() == Code::Unimplemented && status.source().is_none()
}

/// Whether a request had a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentToken {
    Yes,
    No,
}

fn of_status(status: &Status) -> ServiceFault {
    if let Some(fault) = connect_fault(status) {
        return fault;
    }
    let text = match sources(status).last() {
        Some(cause) => cause.to_string(),
        None => status.message().to_owned(),
    };
    let is_connected = !sources(status).any(|error| error.is::<ConnectError>());
    if is_connected && status.source().is_some() && status.code() != Code::Cancelled {
        ServiceFault::Broke(text)
    } else {
        ServiceFault::Unavailable(text)
    }
}

/// The fault of a connection that cannot be repaired by waiting, if that is the cause of a status.
pub(super) fn connect_fault(status: &Status) -> Option<ServiceFault> {
    sources(status).find_map(|error| {
        if let Some(error) = error.downcast_ref::<FileError>() {
            return Some(ServiceFault::File(error.clone()));
        }
        match error.downcast_ref() {
            Some(ConnectFault::Tls(error)) => Some(ServiceFault::Tls(error.to_string())),
            Some(error @ ConnectFault::Host(_)) => Some(ServiceFault::Tls(error.to_string())),
            Some(ConnectFault::Tcp(_)) => None,
            // With TLS 1.3, the service's refusal arrives after the client's handshake. HTTP/2 keeps only its text.
            None => {
                let text = error.to_string();
                let alert = text.get(text.find(ALERT)?..)?;
                Some(ServiceFault::Tls(alert.to_owned()))
            }
        }
    })
}

/// The beginning of the text of a refusal.
const ALERT: &str = "received fatal alert";

/// The sources of a status, the innermost last.
pub(super) fn sources(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |error| (*error).source())
}
