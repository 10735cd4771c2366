//! Creates and changes streams and consumers, for `tarsy migrate`.

use std::time::Duration;

use async_nats::jetstream::{ErrorCode, stream};
use tokio::time::Instant;

use super::consumers::Durable;
use super::settings::TopologySettings;
use super::streams;
use crate::cause::Cause;
use crate::connection::Nats;
use crate::error::Error;

/// The longest time that a stream may take to move to other servers before its number of copies is changed.
const MOVE_TIMEOUT: Duration = Duration::from_secs(120);
/// The time between two looks at a stream that moves.
const MOVE_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The longest time that servers that elect a leader may leave a request unanswered. Each request waits for 10 s of
/// it.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(60);

/// The numbers of streams and consumers that `ensure_topology` has created and updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyChanges {
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
}

impl Nats {
    /// Creates missing streams and consumers, updates those that differ, and verifies the result. A stream keeps
    /// additional replicas, and every bound that is larger than its default.
    ///
    /// # Errors
    ///
    /// When the server refuses a change, ignores a setting or leaves requests unanswered for a minute;
    /// [`Error::Storage`] when the storage of a stream is not the configured one, which NATS cannot change.
    pub async fn ensure_topology(
        &self,
        settings: &TopologySettings,
    ) -> Result<TopologyChanges, Error> {
        let mut changes = TopologyChanges::default();
        for expected in streams::expected(settings, self.max_payload()) {
            self.ensure_stream(expected, settings, &mut changes).await?;
        }
        for durable in Durable::needed(settings) {
            self.ensure_consumer(durable, settings, &mut changes)
                .await?;
        }
        through_elections(async || self.verify_topology(settings).await).await?;
        Ok(changes)
    }

    async fn ensure_stream(
        &self,
        expected: stream::Config,
        settings: &TopologySettings,
        changes: &mut TopologyChanges,
    ) -> Result<(), Error> {
        // A server without a cluster accepts every placement, and ignores it.
        if expected.placement.is_some() && !self.is_clustered() {
            return Err(Error::PlacementWithoutCluster(expected.name));
        }
        let found = through_elections(async || self.find_stream(&expected.name).await).await?;
        let Some(found) = found else {
            through_elections(async || {
                let created = self.jetstream.create_stream(&expected).await;
                created.map_err(|error| self.admin(&expected.name, "create", &error))
            })
            .await?;
            changes.created += 1;
            return Ok(());
        };
        if found.config.storage != expected.storage {
            let found = found.config.storage;
            return Err(Error::storage(&expected.name, found, expected.storage));
        }
        let target = streams::target(&found, expected, settings);
        let differences = streams::differences(&found.config, &target);
        if differences.is_empty() {
            changes.unchanged += 1;
            return Ok(());
        }
        for difference in &differences {
            tracing::info!("stream updated: {difference}");
        }
        let placement = found.config.placement.clone();
        let copies = found.config.num_replicas;
        let merged = streams::merged(found.config, target);
        if merged.placement != placement && merged.num_replicas != copies {
            // NATS does not move and scale a stream in one update. The present servers may be too few for the copies.
            self.update_stream(&stream::Config {
                num_replicas: copies,
                ..merged.clone()
            })
            .await?;
            self.scale_when_moved(&merged, copies).await?;
        } else {
            self.update_stream(&merged).await?;
        }
        changes.updated += 1;
        Ok(())
    }

    async fn update_stream(&self, config: &stream::Config) -> Result<(), Error> {
        through_elections(async || {
            let updated = self.jetstream.update_stream(config).await;
            updated
                .map(drop)
                .map_err(|error| Error::admin(&config.name, "update", &error))
        })
        .await
    }

    /// Updates a stream when its move has ended: it is on as many servers as it had `copies`, and all are up to date.
    async fn scale_when_moved(&self, config: &stream::Config, copies: usize) -> Result<(), Error> {
        let limit = Instant::now() + MOVE_TIMEOUT;
        let mut reason = "it still moves".to_owned();
        while Instant::now() < limit {
            tokio::time::sleep(MOVE_POLL_INTERVAL).await; // interval between polls
            let found = through_elections(async || self.find_stream(&config.name).await).await?;
            let cluster = found.and_then(|found| found.cluster);
            let has_moved = cluster.is_some_and(|cluster| {
                let is_whole = cluster.leader.is_some() && cluster.replicas.len() + 1 == copies;
                is_whole && cluster.replicas.iter().all(|copy| copy.current)
            });
            if !has_moved {
                continue;
            }
            match self.update_stream(config).await {
                // The report was older than the move.
                Err(Error::Admin {
                    reason: refused,
                    cause: Cause::Refused(ErrorCode::STREAM_MOVE_IN_PROGRESS),
                    ..
                }) => reason = refused,
                updated => return updated,
            }
        }
        Err(Error::Admin {
            object: config.name.clone(),
            action: "update",
            reason: format!("{reason} after {MOVE_TIMEOUT:?}: run `tarsy migrate` again"),
            cause: Cause::Other,
        })
    }

    async fn ensure_consumer(
        &self,
        durable: Durable,
        settings: &TopologySettings,
        changes: &mut TopologyChanges,
    ) -> Result<(), Error> {
        let expected = durable.expected(settings);
        let found = through_elections(async || self.find_consumer(durable).await).await?;
        let (action, count) = match &found {
            None => ("create", &mut changes.created),
            Some(found) if durable.differences(found, settings).is_empty() => {
                changes.unchanged += 1;
                return Ok(());
            }
            Some(_) => ("update", &mut changes.updated),
        };
        through_elections(async || {
            let done = self
                .jetstream
                .create_consumer_on_stream(expected.clone(), durable.stream())
                .await;
            done.map_err(|error| Error::admin(durable.name(), action, &error))
        })
        .await?;
        *count += 1;
        Ok(())
    }
}

/// Repeats a request while no server answers it: servers that elect a leader drop requests. Every request of
/// [`Nats::ensure_topology`] may be repeated.
async fn through_elections<T>(ask: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let limit = Instant::now() + ELECTION_TIMEOUT;
    loop {
        match ask().await {
            Err(Error::Admin {
                object,
                reason,
                cause: Cause::TimedOut,
                ..
            }) if Instant::now() < limit => {
                tracing::info!(%object, reason, "no server answered: trying again");
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_unanswered_request_is_repeated_for_a_minute_and_a_refused_one_is_not() {
        let asked = AtomicU32::new(0);
        let ask = async |answered_at: u32, cause: Cause| {
            tokio::time::sleep(Duration::from_secs(10)).await; // the time limit of a request
            match asked.fetch_add(1, Ordering::Relaxed) + 1 {
                count if count == answered_at => Ok(()),
                _ => Err(Error::Admin {
                    object: "TARSY_ALERTS".to_owned(),
                    action: "read",
                    reason: String::new(),
                    cause,
                }),
            }
        };
        through_elections(async || ask(3, Cause::TimedOut).await)
            .await
            .unwrap();
        assert_eq!(asked.swap(0, Ordering::Relaxed), 3);
        through_elections(async || ask(u32::MAX, Cause::TimedOut).await)
            .await
            .unwrap_err();
        assert_eq!(asked.swap(0, Ordering::Relaxed), 6);
        through_elections(async || ask(3, Cause::Refused(ErrorCode::CLUSTER_NO_PEERS)).await)
            .await
            .unwrap_err();
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
