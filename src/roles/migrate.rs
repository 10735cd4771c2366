//! `tarsy migrate`: brings the database and the streams to this version. Safe to run again, and in many places.

use super::connect::{Addresses, topology};
use crate::bus::Ensured;
use crate::config::Config;
use crate::store::migrate;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Names of the migrations that were applied now.
    pub migrations: Vec<String>,
    /// Streams and consumers.
    pub ensured: Ensured,
}

/// Migrates both.
///
/// # Errors
/// When one of them cannot be reached or cannot be brought to this version.
pub async fn run(addresses: &Addresses, config: &Config) -> anyhow::Result<Migrated> {
    let migrations = migrate(&addresses.database_for_command("migrate")?).await?;
    let nats = addresses.nats_for_command("migrate").await?;
    let ensured = Box::pin(nats.ensure_topology(&topology(config))).await?;
    Ok(Migrated { migrations, ensured })
}
