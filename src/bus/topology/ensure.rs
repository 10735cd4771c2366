//! Creates and changes streams and consumers, for `tarsy migrate`.

use std::time::Duration;

use async_nats::jetstream::stream;
use tokio::time::Instant;

use super::settings::TopologySettings;
use super::{consumers, streams};
use crate::bus::connection::Nats;
use crate::bus::error::Error;
use crate::bus::names::{ALERTS, Priority};

/// How long a stream may take to move to other servers before its number of copies is changed.
const MOVE_TIMEOUT: Duration = Duration::from_secs(120);
/// Between two looks at a stream that moves.
const MOVE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How many streams and consumers `ensure_topology` has created and updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyChanges {
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
}

/// What happened to a stream or a consumer.
enum Ensured {
    Created,
    Updated,
    Unchanged,
}

impl TopologyChanges {
    fn count(&mut self, ensured: &Ensured) {
        match ensured {
            Ensured::Created => self.created += 1,
            Ensured::Updated => self.updated += 1,
            Ensured::Unchanged => self.unchanged += 1,
        }
    }
}

impl Nats {
    /// Creates missing streams and consumers, updates those that differ, and verifies the result. A stream keeps
    /// additional replicas, and every bound that is larger than a [`super::Bound::AtLeast`].
    ///
    /// # Errors
    ///
    /// When the server refuses a change or ignores a setting; [`Error::Storage`] when the storage of a stream is not
    /// the configured one, which NATS cannot change.
    pub async fn ensure_topology(&self, settings: &TopologySettings) -> Result<TopologyChanges, Error> {
        let mut ensured = TopologyChanges::default();
        for expected in streams::expected(settings, self.max_payload()) {
            ensured.count(&self.ensure_stream(expected, settings).await?);
        }
        for priority in Priority::ALL {
            ensured.count(&self.ensure_consumer(priority, settings).await?);
        }
        self.verify_topology(settings).await?;
        Ok(ensured)
    }

    async fn ensure_stream(&self, expected: stream::Config, settings: &TopologySettings) -> Result<Ensured, Error> {
        // A server without a cluster accepts every placement, and ignores it.
        if expected.placement.is_some() && !self.is_clustered() {
            return Err(Error::PlacementWithoutCluster(expected.name));
        }
        let Some(found) = self.find_stream(&expected.name).await? else {
            let created = self.jetstream.create_stream(&expected).await;
            created.map_err(|error| self.admin(&expected.name, "create", &error))?;
            return Ok(Ensured::Created);
        };
        if found.config.storage != expected.storage {
            let (found, expected_storage) = (found.config.storage, expected.storage);
            return Err(Error::storage(&expected.name, found, expected_storage));
        }
        let target = streams::target(&found, expected, settings);
        let differences = streams::differences(&found.config, &target);
        if differences.is_empty() {
            return Ok(Ensured::Unchanged);
        }
        for difference in &differences {
            tracing::info!("stream updated: {difference}");
        }
        let (placement, copies) = (found.config.placement.clone(), found.config.num_replicas);
        let merged = streams::merged(found.config, target);
        if merged.placement != placement && merged.num_replicas != copies {
            // NATS does not move and scale a stream in one update. The present servers may be too few for the copies.
            self.update_stream(&stream::Config { num_replicas: copies, ..merged.clone() }).await?;
            self.scale_when_moved(&merged, copies).await?;
        } else {
            self.update_stream(&merged).await?;
        }
        Ok(Ensured::Updated)
    }

    async fn update_stream(&self, config: &stream::Config) -> Result<(), Error> {
        let updated = self.jetstream.update_stream(config).await;
        updated.map(|_| ()).map_err(|error| Error::admin(&config.name, "update", &error))
    }

    /// Updates a stream when its move has ended: it is on as many servers as it had `copies`, and all are up to date.
    async fn scale_when_moved(&self, config: &stream::Config, copies: usize) -> Result<(), Error> {
        let limit = Instant::now() + MOVE_TIMEOUT;
        let mut reason = "it still moves".to_owned();
        while Instant::now() < limit {
            tokio::time::sleep(MOVE_POLL_INTERVAL).await; // interval between polls
            let cluster = self.find_stream(&config.name).await?.and_then(|found| found.cluster);
            let has_moved = cluster.is_some_and(|cluster| {
                let is_whole = cluster.leader.is_some() && cluster.replicas.len() + 1 == copies;
                is_whole && cluster.replicas.iter().all(|copy| copy.current)
            });
            if !has_moved {
                continue;
            }
            match self.update_stream(config).await {
                // The report was older than the move.
                Err(Error::Admin { reason: refused, .. }) if refused.contains("move already in progress") => {
                    reason = refused;
                }
                updated => return updated,
            }
        }
        let reason = format!("{reason} after {MOVE_TIMEOUT:?}: run `tarsy migrate` again");
        Err(Error::admin(&config.name, "update", &reason))
    }

    async fn ensure_consumer(&self, priority: Priority, settings: &TopologySettings) -> Result<Ensured, Error> {
        let expected = consumers::expected(priority, settings);
        let found = self.find_consumer(priority).await?;
        let (action, ensured) = match &found {
            None => ("create", Ensured::Created),
            Some(found) if consumers::differences(priority, found, &expected).is_empty() => {
                return Ok(Ensured::Unchanged);
            }
            Some(_) => ("update", Ensured::Updated),
        };
        let done = self.jetstream.create_consumer_on_stream(expected, ALERTS).await;
        done.map_err(|error| Error::admin(priority.consumer(), action, &error))?;
        Ok(ensured)
    }
}
