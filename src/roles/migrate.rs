//! `tarsy migrate`: brings the database and the streams to this version. Safe to run again, and in many places.

use std::time::Duration;

use super::connect::{Addresses, topology};
use crate::bus::TopologyChanges;
use crate::config::Config;
use crate::store;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// What was done to the database.
    pub database: store::Migrated,
    /// Streams and consumers.
    pub ensured: TopologyChanges,
}

/// Migrates both; waits for `patience` for tables that are in use.
///
/// # Errors
/// When one of them cannot be reached or cannot be brought to this version.
pub async fn run(addresses: &Addresses, config: &Config, patience: Duration) -> anyhow::Result<Migrated> {
    let database = store::migrate(&addresses.database_for_command("migrate")?, patience).await?;
    let nats = addresses.nats_for_command("migrate").await?;
    let ensured = Box::pin(nats.ensure_topology(&topology(config))).await?;
    Ok(Migrated { database, ensured })
}
