//! The streams and consumers: `tarsy migrate` creates them, and a worker verifies every field when it starts.
//!
//! A server ignores settings that it does not know, and people edit streams. Both would silently break a guarantee, so
//! a worker compares the server's configuration with the expected one before it claims an alert. Operators choose
//! replicas, ages and sizes: larger values than the expected ones are accepted, and reduced only if the configuration
//! names a smaller one.

mod settings;
mod streams;
mod consumers;
mod lookup;
pub(super) mod fields;
mod inspect;

use async_nats::jetstream::stream;

use super::connection::Nats;
use super::error::Error;
use super::names::{ALERTS, Priority};

pub use fields::Difference;
pub use inspect::{TopologyReport, TopologyStatus, Weakness};
pub use settings::{Bound, TopologySettings};

/// How many streams and consumers `ensure_topology` has created and updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyChanges {
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
}

impl Nats {
    /// Creates missing streams and consumers, updates those that differ, and verifies the result. A stream keeps
    /// additional replicas, and every bound that is larger than a [`Bound::AtLeast`].
    ///
    /// # Errors
    ///
    /// When the server refuses a change (retention and storage of a stream cannot be changed) or ignores a setting.
    pub async fn ensure_topology(&self, settings: &TopologySettings) -> Result<TopologyChanges, Error> {
        let mut ensured = TopologyChanges::default();
        for expected in streams::expected(settings, self.max_payload()) {
            let Some(found) = self.find_stream(&expected.name).await? else {
                let created = self.jetstream.create_stream(&expected).await;
                created.map_err(|error| Error::admin(&expected.name, "create", &error))?;
                ensured.created += 1;
                continue;
            };
            let target = streams::target(&found, expected, settings);
            let differences = streams::differences(&found.config, &target);
            if differences.is_empty() {
                ensured.unchanged += 1;
                continue;
            }
            for difference in &differences {
                tracing::info!("stream updated: {difference}");
            }
            let merged = streams::merged(found.config, target);
            let updated = self.jetstream.update_stream(&merged).await;
            updated.map_err(|error| Error::admin(&merged.name, "update", &error))?;
            ensured.updated += 1;
        }
        for priority in Priority::ALL {
            let expected = consumers::expected(priority, settings);
            let found = self.find_consumer(priority).await?;
            match &found {
                None => ensured.created += 1,
                Some(found) if consumers::differences(priority, found, &expected).is_empty() => {
                    ensured.unchanged += 1;
                    continue;
                }
                Some(_) => ensured.updated += 1,
            }
            let action = if found.is_some() { "update" } else { "create" };
            let done = self.jetstream.create_consumer_on_stream(expected, ALERTS).await;
            done.map_err(|error| Error::admin(priority.consumer(), action, &error))?;
        }
        self.verify_topology(settings).await?;
        Ok(ensured)
    }

    /// Compares the streams and consumers with the expected ones; replicas, ages and sizes may be larger.
    ///
    /// # Errors
    ///
    /// [`Error::Topology`] with every difference; other errors when the server does not answer.
    pub async fn verify_topology(&self, settings: &TopologySettings) -> Result<(), Error> {
        let mut differences = Vec::new();
        for expected in streams::expected(settings, self.max_payload()) {
            differences.extend(self.compare_stream(&expected).await?);
        }
        for priority in Priority::ALL {
            differences.extend(self.compare_consumer(priority, settings).await?);
        }
        if differences.is_empty() { Ok(()) } else { Err(Error::Topology(differences)) }
    }

    async fn compare_stream(&self, expected: &stream::Config) -> Result<Vec<Difference>, Error> {
        Ok(match self.find_stream(&expected.name).await? {
            None => vec![Difference::missing(&expected.name)],
            Some(found) => streams::differences(&found.config, &streams::at_least(&found.config, expected)),
        })
    }

    async fn compare_consumer(
        &self,
        priority: Priority,
        settings: &TopologySettings,
    ) -> Result<Vec<Difference>, Error> {
        Ok(match self.find_consumer(priority).await? {
            None => vec![Difference::missing(&priority.consumer())],
            Some(found) => consumers::differences(priority, &found, &consumers::expected(priority, settings)),
        })
    }

    fn max_payload(&self) -> usize {
        self.client.server_info().max_payload
    }

    /// Whether the stream of alerts exists, with any configuration.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn has_topology(&self) -> Result<bool, Error> {
        Ok(self.find_stream(ALERTS).await?.is_some())
    }
}
