//! The streams and consumers: created by `tarsy migrate`, compared field by field by everything else.
//!
//! A server ignores settings it does not know, and people edit streams. Both would break a promise silently, so what
//! the server says it has is compared with what tarsy needs before anything is claimed.

mod consumers;
mod examine;
mod fields;
mod streams;

use std::time::Duration;

use async_nats::jetstream::context::{ConsumerInfoErrorKind, GetStreamErrorKind};
use async_nats::jetstream::{ErrorCode, consumer, stream};

use super::connection::Nats;
use super::error::Error;
use super::names::ALERTS;

pub use examine::{Examined, Verdict};
pub use fields::Difference;

/// What an operator may choose about the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySettings {
    /// Copies of each message, 1 to 5. Three in production.
    pub replicas: usize,
    /// Where the queue of alerts is full.
    pub alerts_max_bytes: i64,
    /// How long a claimed alert may be silent: the lease.
    pub ack_wait: Duration,
    /// How long timeline events stay on the stream.
    pub timeline_max_age: Duration,
    /// How long dead letters are kept.
    pub dead_letters_max_age: Duration,
    /// How long a request to a session is kept.
    pub control_max_age: Duration,
}

impl Default for TopologySettings {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        Self {
            replicas: 1,
            alerts_max_bytes: 1024 * 1024 * 1024,
            ack_wait: Duration::from_secs(30),
            timeline_max_age: 72 * HOUR,
            dead_letters_max_age: 30 * 24 * HOUR,
            control_max_age: 24 * HOUR,
        }
    }
}

/// What `ensure` did, counting streams and consumers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ensured {
    /// Were not there.
    pub created: usize,
    /// Differed.
    pub updated: usize,
    /// Were as they must be.
    pub unchanged: usize,
}

impl Nats {
    /// Creates what is missing, changes what differs, and verifies the result.
    ///
    /// # Errors
    ///
    /// When the server refuses a change (retention and storage of a stream cannot be changed) or ignores a setting.
    pub async fn ensure_topology(&self, settings: &TopologySettings) -> Result<Ensured, Error> {
        let mut ensured = Ensured::default();
        for expected in streams::expected(settings, self.max_payload()) {
            match self.find_stream(&expected.name).await? {
                None => {
                    let name = expected.name.clone();
                    self.jetstream().create_stream(expected).await.map_err(|error| admin(&name, "create", &error))?;
                    ensured.created += 1;
                }
                Some(found) if streams::differences(&found, &expected).is_empty() => ensured.unchanged += 1,
                Some(found) => {
                    let merged = streams::merged(found, expected);
                    let updated = self.jetstream().update_stream(&merged).await;
                    updated.map_err(|error| admin(&merged.name, "update", &error))?;
                    ensured.updated += 1;
                }
            }
        }
        for expected in consumers::expected(settings) {
            let name = consumers::name(&expected);
            let found = self.find_consumer(&name).await?;
            match &found {
                None => ensured.created += 1,
                Some(found) if consumers::differences(found, &expected).is_empty() => {
                    ensured.unchanged += 1;
                    continue;
                }
                Some(_) => ensured.updated += 1,
            }
            let action = if found.is_some() { "update" } else { "create" };
            let done = self.jetstream().create_consumer_on_stream(expected, ALERTS).await;
            done.map_err(|error| admin(&format!("{ALERTS}/{name}"), action, &error))?;
        }
        self.verify_topology(settings).await?;
        Ok(ensured)
    }

    /// Compares every field that matters.
    ///
    /// # Errors
    ///
    /// [`Error::Topology`] with every difference, or that the server does not answer.
    pub async fn verify_topology(&self, settings: &TopologySettings) -> Result<(), Error> {
        let mut differences = Vec::new();
        for expected in streams::expected(settings, self.max_payload()) {
            differences.extend(self.compare_stream(&expected).await?);
        }
        for expected in consumers::expected(settings) {
            differences.extend(self.compare_consumer(&expected).await?);
        }
        if differences.is_empty() { Ok(()) } else { Err(Error::Topology(differences)) }
    }

    async fn compare_stream(&self, expected: &stream::Config) -> Result<Vec<Difference>, Error> {
        Ok(match self.find_stream(&expected.name).await? {
            None => vec![Difference::missing(&expected.name)],
            Some(found) => streams::differences(&found, expected),
        })
    }

    async fn compare_consumer(&self, expected: &consumer::pull::Config) -> Result<Vec<Difference>, Error> {
        let name = consumers::name(expected);
        Ok(match self.find_consumer(&name).await? {
            None => vec![Difference::missing(&format!("{ALERTS}/{name}"))],
            Some(found) => consumers::differences(&found, expected),
        })
    }

    fn max_payload(&self) -> usize {
        self.client().server_info().max_payload
    }

    /// Whether the stream of alerts exists, whatever it looks like.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn has_topology(&self) -> Result<bool, Error> {
        Ok(self.find_stream(ALERTS).await?.is_some())
    }

    async fn find_stream(&self, name: &str) -> Result<Option<stream::Config>, Error> {
        match self.jetstream().get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().config.clone())),
            Err(error) => {
                let code = match error.kind() {
                    GetStreamErrorKind::JetStream(reason) => Some(reason.error_code()),
                    GetStreamErrorKind::EmptyName
                    | GetStreamErrorKind::Request
                    | GetStreamErrorKind::InvalidStreamName => None,
                };
                if code == Some(ErrorCode::STREAM_NOT_FOUND) { Ok(None) } else { Err(admin(name, "read", &error)) }
            }
        }
    }

    async fn find_consumer(&self, name: &str) -> Result<Option<consumer::Config>, Error> {
        let object = format!("{ALERTS}/{name}");
        let stream = self.jetstream().get_stream_no_info(ALERTS).await;
        let stream = stream.map_err(|error| admin(&object, "read", &error))?;
        match stream.consumer_info(name).await {
            Ok(info) => Ok(Some(info.config)),
            Err(error)
                if matches!(error.kind(), ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound) =>
            {
                Ok(None)
            }
            Err(error) => Err(admin(&object, "read", &error)),
        }
    }
}

fn admin(object: &str, action: &'static str, error: &dyn std::error::Error) -> Error {
    Error::Admin { object: object.to_owned(), action, reason: error.to_string() }
}
