//! The streams and consumers: `tarsy migrate` creates them, and a worker verifies every field when it starts.
//!
//! A server ignores settings that it does not know, and people edit streams. Both would silently break a guarantee, so
//! a worker compares the server's configuration with the expected one before it claims an alert. Operators choose
//! replicas, ages and sizes: larger values than the expected ones are accepted, and reduced only if the configuration
//! names a smaller one. They also choose the servers and the storage of each stream.

mod settings;
mod streams;
mod consumers;
mod lookup;
pub(super) mod fields;
mod ensure;
mod inspect;
mod copies;

use async_nats::jetstream::stream;

use super::connection::Nats;
use super::error::Error;
use super::names::ALERTS;
use consumers::Durable;

pub use crate::difference::Difference;
pub use copies::{CopyBehind, StreamCopies};
pub use ensure::TopologyChanges;
pub use inspect::{TopologyReport, TopologyStatus, Weakness};
pub use settings::{PeopleStream, TopologySettings};

impl Nats {
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
        for durable in Durable::needed(settings) {
            differences.extend(self.compare_consumer(durable, settings).await?);
        }
        if differences.is_empty() {
            Ok(())
        } else {
            Err(Error::Topology(differences))
        }
    }

    async fn compare_stream(&self, expected: &stream::Config) -> Result<Vec<Difference>, Error> {
        Ok(match self.find_stream(&expected.name).await? {
            None => vec![Difference::missing(&expected.name)],
            Some(found) => {
                streams::differences(&found.config, &streams::at_least(&found.config, expected))
            }
        })
    }

    async fn compare_consumer(
        &self,
        durable: Durable,
        settings: &TopologySettings,
    ) -> Result<Vec<Difference>, Error> {
        Ok(match self.find_consumer(durable).await? {
            None => vec![Difference::missing(&durable.name())],
            Some(found) => durable.differences(&found, settings),
        })
    }

    /// Whether the server belongs to a cluster.
    pub(super) fn is_clustered(&self) -> bool {
        self.client
            .server_info()
            .cluster
            .is_some_and(|name| !name.is_empty())
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
