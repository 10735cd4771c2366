//! The database as commands use it: short time limits, and errors that name the remedy.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};

use super::{addresses, public_url};
use crate::cli::args::GlobalArgs;
use crate::cli::session_ref::SessionRef;
use tarsy_bus::Nats;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::StoreError;
use tarsy_store::{ConnectOptions, IdMatch, Store, check_schema};

const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The database has no alert or session that the arguments name. The queue may have it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotFound(pub(super) String);

/// A connection pool whose calls end within seconds.
pub(super) struct Database {
    pub(super) store: Arc<Store>,
    options: ConnectOptions,
    /// The address without secrets.
    redacted: String,
}

impl Database {
    /// Reads the address; the first call connects.
    pub(super) fn new(global: &GlobalArgs, command: &str) -> anyhow::Result<Self> {
        let addresses = addresses(global);
        let options = addresses.database_for_command(command)?;
        let store = Store::new(&options)?.linking(public_url(global));
        Ok(Self {
            store: Arc::new(store),
            options,
            redacted: addresses.redacted_database(),
        })
    }

    /// Runs a call of the store; an error names what mends it.
    pub(super) async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, tarsy_store::Error>>,
    ) -> anyhow::Result<T> {
        match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.cause(error).await),
            Err(_) => {
                let no_answer = self.no_answer();
                bail!(
                    "{no_answer}. Fix: start Postgres there, or set DATABASE_URL or --database-url"
                )
            }
        }
    }

    /// Runs a call through a port of the engine.
    pub(super) async fn call_port<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> anyhow::Result<T> {
        Ok(tokio::time::timeout(CALL_TIMEOUT, call)
            .await
            .map_err(|_| anyhow!(self.no_answer()))??)
    }

    fn no_answer(&self) -> String {
        let secs = CALL_TIMEOUT.as_secs();
        format!("no answer from {} within {secs} s", self.redacted)
    }

    /// The reason for a failed call: most statements fail because the schema is of another version, or the role may not
    /// read it.
    async fn cause(&self, error: tarsy_store::Error) -> anyhow::Error {
        if !matches!(error, tarsy_store::Error::Statement(_)) {
            return error.into();
        }
        match tokio::time::timeout(CALL_TIMEOUT, check_schema(&self.options)).await {
            Ok(Err(
                fault @ (tarsy_store::Error::SchemaBehind(_)
                | tarsy_store::Error::SchemaTooNew(_)
                | tarsy_store::Error::NotAllowed { .. }),
            )) => fault.into(),
            Ok(_) | Err(_) => error.into(),
        }
    }

    /// The alert or session that a reference names. A whole id is not looked up.
    pub(super) async fn find(&self, wanted: &SessionRef) -> anyhow::Result<SessionId> {
        if let Some(session) = wanted.whole() {
            return Ok(session);
        }
        match self.call(self.store.resolve(wanted.digits())).await? {
            IdMatch::One(session) => Ok(session),
            IdMatch::Invalid => bail!("a part of an id has at least six hexadecimal digits"),
            IdMatch::None => bail!(NotFound(format!(
                "no session has {} at either end of its id; old ones may be deleted (tarsy prune)",
                wanted.digits()
            ))),
            IdMatch::Many(sessions) => bail!(ambiguous("sessions", wanted.digits(), &sessions)),
        }
    }
}

/// Adds the remedy if a call has failed because the streams do not exist; without `JetStream` that is the error.
pub(super) async fn with_cause<T>(nats: &Nats, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
    let error = match outcome {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    Err(match stream_fault(nats).await {
        Some(fault) if fault.is::<tarsy_bus::Error>() => fault,
        Some(fault) => error.context(fault.to_string()),
        None => error,
    })
}

/// The reason why no stream of a server can be read; `None` if it has the streams, or does not answer.
pub(super) async fn stream_fault(nats: &Nats) -> Option<anyhow::Error> {
    match nats.has_topology().await {
        Err(error @ tarsy_bus::Error::NoJetStream { .. }) => Some(error.into()),
        Ok(false) => Some(anyhow!("the streams do not exist: run tarsy migrate")),
        Ok(true) | Err(_) => None,
    }
}

/// The message for a reference that matches several ids.
pub(super) fn ambiguous(what: &str, digits: &str, ids: &[SessionId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!(
        "several {what} have {digits} at one end of their ids:\n  {}",
        ids.join("\n  ")
    )
}
