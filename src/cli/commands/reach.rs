//! How commands reach the database, and how they print what they found.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::Serialize;

use super::addresses;
use crate::bus::Nats;
use crate::cli::args::GlobalArgs;
use crate::cli::render::json;
use crate::cli::session_ref::SessionRef;
use crate::investigation::ids::SessionId;
use crate::store::{self, ConnectOptions, IdMatch, Store, check_schema};

/// A person waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// The database, for a command: whoever asks hears within seconds.
pub(super) struct Database {
    pub(super) store: Arc<Store>,
    options: ConnectOptions,
    shown: String,
}

impl Database {
    /// Connects to nothing yet.
    pub(super) fn of(global: &GlobalArgs, command: &str) -> anyhow::Result<Self> {
        let addresses = addresses(global);
        let options = addresses.database_for_command(command)?;
        Ok(Self { store: Arc::new(Store::new(&options)?), options, shown: addresses.shown_database() })
    }

    /// The answer, or what to do about there being none.
    pub(super) async fn ask<T>(&self, call: impl Future<Output = Result<T, store::Error>>) -> anyhow::Result<T> {
        let silent = || format!("no answer from {} within {} s", self.shown, PATIENCE.as_secs());
        let answer = tokio::time::timeout(PATIENCE, call).await.map_err(|_| anyhow!(silent()));
        let error = match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => self.cause(error).await,
            Err(silence) => silence,
        };
        Err(error.context("the database cannot be used (DATABASE_URL or --database-url says where it is)"))
    }

    /// A statement that fails is most often one that the schema does not know yet.
    async fn cause(&self, error: store::Error) -> anyhow::Error {
        if !matches!(error, store::Error::Statement(_)) {
            return error.into();
        }
        match tokio::time::timeout(PATIENCE, check_schema(&self.options)).await {
            Ok(Err(fault @ (store::Error::SchemaBehind(_) | store::Error::SchemaTooNew(_)))) => fault.into(),
            Ok(_) | Err(_) => error.into(),
        }
    }

    /// The alert or session that is meant. A whole id is taken as it is.
    pub(super) async fn find(&self, wanted: &SessionRef) -> anyhow::Result<SessionId> {
        if let Some(session) = wanted.whole() {
            return Ok(session);
        }
        match self.ask(self.store.resolve(wanted.digits())).await? {
            IdMatch::One(session) => Ok(session),
            IdMatch::Invalid => bail!("a part of an id has at least six hexadecimal digits"),
            IdMatch::None => bail!(
                "no session has {} at either end of its id; old ones may be deleted (tarsy prune)",
                wanted.digits()
            ),
            IdMatch::Many(sessions) => bail!(ambiguous("sessions", wanted.digits(), &sessions)),
        }
    }
}

/// Most of what fails on a new broker fails because nobody has made the streams yet.
pub(super) async fn with_cause<T>(nats: &Nats, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
    let error = match outcome {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let is_empty = nats.has_topology().await.is_ok_and(|found| !found);
    Err(if is_empty { error.context("the streams are not there: run tarsy migrate") } else { error })
}

/// More than one thing is meant.
pub(super) fn ambiguous(what: &str, digits: &str, ids: &[SessionId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("several {what} have {digits} at one end of their ids:\n  {}", ids.join("\n  "))
}

/// Prints lines on standard output.
pub(super) fn print(lines: &[String]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints one object on one line.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&[json::line(value).context("as JSON")?])
}

/// Prints a remark on standard error.
pub(super) fn note(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "{text}")?;
    Ok(())
}
