//! Reports each stream and each consumer separately, for `doctor`.

use async_nats::jetstream::stream::{self, StorageType};

use super::consumers::Durable;
use super::settings::TopologySettings;
use super::streams;
use crate::connection::Nats;
use crate::error::Error;
use crate::names::{ALERTS, DEAD_LETTERS, PEOPLE};

use crate::difference::Difference;

/// A stream or a consumer and its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyReport {
    /// `TARSY_ALERTS` or `TARSY_ALERTS/critical`.
    pub name: String,
    pub status: TopologyStatus,
}

/// The status of a stream or a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyStatus {
    /// It is as expected.
    Fine,
    /// It does not exist.
    Missing,
    /// It works, but could be safer.
    Weak(Weakness),
    /// Its configuration is not as expected.
    Differs(Vec<Difference>),
    /// It cannot be read; holds the error of the server.
    Unreadable(String),
}

/// A risk of a stream that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// It has one replica, although the servers form a cluster.
    OneCopy,
    /// It has no limit of bytes.
    Unbounded,
    /// Other servers than those of the configured placement may have its copies.
    Misplaced,
    /// It is the only place of its messages, and in memory.
    InMemory,
}

impl Nats {
    /// The status of each stream and each consumer, streams first.
    ///
    /// # Errors
    ///
    /// When the server does not answer at all, or has no JetStream.
    pub async fn inspect_topology(
        &self,
        settings: &TopologySettings,
    ) -> Result<Vec<TopologyReport>, Error> {
        self.rtt().await?;
        let streams = streams::expected(settings, self.max_payload());
        let streams = streams.iter().map(|expected| async {
            let status = self.inspect_stream(expected).await?;
            Ok(TopologyReport {
                name: expected.name.clone(),
                status,
            })
        });
        let consumers = Durable::needed(settings);
        let consumers = consumers.into_iter().map(|durable| async move {
            let status = status_of(self.compare_consumer(durable, settings).await)?;
            Ok(TopologyReport {
                name: durable.name(),
                status,
            })
        });
        // Concurrently: without a permission, the server does not answer and the request times out.
        let (streams, consumers) = tokio::join!(
            futures_util::future::join_all(streams),
            futures_util::future::join_all(consumers)
        );
        streams.into_iter().chain(consumers).collect()
    }

    async fn inspect_stream(&self, expected: &stream::Config) -> Result<TopologyStatus, Error> {
        match self.find_stream(&expected.name).await {
            Ok(Some(found)) => Ok(self.status_of_stream(&found.config, expected)),
            Ok(None) => Ok(TopologyStatus::Missing),
            Err(error) => unreadable(error),
        }
    }

    fn status_of_stream(
        &self,
        found: &stream::Config,
        expected: &stream::Config,
    ) -> TopologyStatus {
        let differences = streams::differences(found, &streams::at_least(found, expected));
        if !differences.is_empty() {
            return TopologyStatus::Differs(differences);
        }
        if expected.placement.is_some() && found.placement != expected.placement {
            return TopologyStatus::Weak(Weakness::Misplaced);
        }
        if self.is_clustered() && found.num_replicas <= 1 {
            return TopologyStatus::Weak(Weakness::OneCopy);
        }
        if found.max_bytes <= 0 && expected.max_bytes > 0 {
            return TopologyStatus::Weak(Weakness::Unbounded);
        }
        if found.storage == StorageType::Memory
            && [ALERTS, DEAD_LETTERS, PEOPLE].contains(&expected.name.as_str())
        {
            return TopologyStatus::Weak(Weakness::InMemory);
        }
        TopologyStatus::Fine
    }
}

fn status_of(compared: Result<Vec<Difference>, Error>) -> Result<TopologyStatus, Error> {
    match compared {
        Ok(differences) if differences.is_empty() => Ok(TopologyStatus::Fine),
        Ok(differences)
            if differences
                .iter()
                .any(|difference| difference.field.is_none()) =>
        {
            Ok(TopologyStatus::Missing)
        }
        Ok(differences) => Ok(TopologyStatus::Differs(differences)),
        Err(error) => unreadable(error),
    }
}

/// Converts an error into the status of an unreadable object. Without `JetStream` it stays an error: every object
/// would have the same reason.
fn unreadable(error: Error) -> Result<TopologyStatus, Error> {
    if matches!(error, Error::NoJetStream { .. }) {
        Err(error)
    } else {
        Ok(TopologyStatus::Unreadable(error.to_string()))
    }
}
