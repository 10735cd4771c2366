//! How roles and commands reach the broker and the database.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::bus::{Nats, Options, Patience, TopologySettings};
use crate::config::Config;
use crate::store::{ConnectOptions, Error, check_schema};

/// Where everything is.
#[derive(Clone)]
pub struct Addresses {
    /// NATS servers, separated by commas.
    pub nats_url: String,
    /// Postgres.
    pub database_url: Option<String>,
    /// The LLM service, as host:port.
    pub llm_addr: String,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").field("llm_addr", &self.llm_addr).finish_non_exhaustive()
    }
}

/// Between two looks at a database that is away.
const DATABASE_RETRY: Duration = Duration::from_secs(3);
/// A person waits: what does not answer in this time is away.
pub(super) const COMMAND_PATIENCE: Duration = Duration::from_secs(3);

impl Addresses {
    /// The broker, for a command: gives up after a few seconds.
    ///
    /// # Errors
    /// When nobody answers, or the server is too old.
    pub async fn nats_for_command(&self, role: &str) -> anyhow::Result<Nats> {
        let connected = self.nats(role, Patience::Bounded(COMMAND_PATIENCE)).await;
        connected.map_err(|error| error.context("the broker cannot be used (NATS_URL or --nats-url says where it is)"))
    }

    /// The broker, for a role: waits as long as it takes.
    ///
    /// # Errors
    /// When the server is too old or cannot be named.
    pub async fn nats_for_role(&self, role: &str) -> anyhow::Result<Nats> {
        self.nats(role, Patience::Endless).await
    }

    async fn nats(&self, role: &str, patience: Patience) -> anyhow::Result<Nats> {
        let options = Options { url: self.nats_url.clone(), role: role.to_owned(), credentials: None, patience };
        Ok(Nats::connect(&options).await?)
    }

    /// How to reach the database.
    ///
    /// # Errors
    /// When no database is named.
    pub fn database(&self, application_name: &str) -> anyhow::Result<ConnectOptions> {
        let url = self.database_url.as_deref().context("no database: set DATABASE_URL or --database-url")?;
        Ok(ConnectOptions { application_name: application_name.to_owned(), ..ConnectOptions::new(url) })
    }
}

/// Waits until the database answers with the schema of this version.
///
/// # Errors
/// When the schema is another version's.
pub async fn wait_for_schema(options: &ConnectOptions) -> anyhow::Result<()> {
    loop {
        match check_schema(options).await {
            Ok(()) => return Ok(()),
            Err(error @ (Error::SchemaBehind(_) | Error::SchemaTooNew(_))) => bail!(error),
            Err(error) => tracing::warn!(error = one_line(&error), "waiting for the database"),
        }
        tokio::time::sleep(DATABASE_RETRY).await; // pacing of retries
    }
}

/// libpq wraps its messages and ends them with a line break.
fn one_line(error: &Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The streams and consumers that fit a configuration.
pub fn topology(config: &Config) -> TopologySettings {
    TopologySettings { ack_wait: config.worker.lease, ..TopologySettings::default() }
}
