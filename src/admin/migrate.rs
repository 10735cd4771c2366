//! `tarsy migrate`: migrates the database and the streams to this version. Safe to repeat and to run in parallel.

use std::time::Duration;

use crate::process::connect::{Addresses, topology};
use tarsy_bus::TopologyChanges;
use tarsy_config::Config;

/// The changes of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    pub database: tarsy_store::Migrated,
    /// Changes of streams and consumers.
    pub ensured: TopologyChanges,
}

/// Migrates database and streams; waits at most `lock_timeout` for tables that are in use.
///
/// # Errors
/// When a server is unavailable or cannot be migrated to this version.
pub async fn run(
    addresses: &Addresses,
    config: &Config,
    lock_timeout: Duration,
) -> anyhow::Result<Migrated> {
    let database =
        tarsy_store::migrate(&addresses.database_for_command("migrate")?, lock_timeout).await?;
    let nats = addresses.nats_for_command("migrate").await?;
    let ensured = Box::pin(nats.ensure_topology(&topology(config))).await?;
    Ok(Migrated { database, ensured })
}
