//! The streams and consumers: created by `tarsy migrate`, compared field by field by everything else.
//!
//! A server ignores settings it does not know, and people edit streams. Both would break a promise silently, so what
//! the server says it has is compared with what tarsy needs before anything is claimed. Copies, ages and sizes are
//! the operator's: more than what is asked for is accepted, and never taken away without being asked.

mod consumers;
mod inspect;
mod fields;
mod found;
mod settings;
mod streams;

use async_nats::jetstream::{consumer, stream};

use super::connection::Nats;
use super::error::Error;
use super::names::ALERTS;

pub use fields::Difference;
pub use inspect::{TopologyReport, TopologyStatus, Weakness};
pub use settings::{Bound, TopologySettings};

/// What `ensure` did, counting streams and consumers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyChanges {
    /// Were not there.
    pub created: usize,
    /// Differed.
    pub updated: usize,
    /// Were as they must be.
    pub unchanged: usize,
}

impl Nats {
    /// Creates what is missing, changes what differs, and verifies the result. A stream keeps the copies that it has
    /// beyond the wanted ones, and every bound that is larger than a [`Bound::AtLeast`].
    ///
    /// # Errors
    ///
    /// When the server refuses a change (retention and storage of a stream cannot be changed) or ignores a setting.
    pub async fn ensure_topology(&self, settings: &TopologySettings) -> Result<TopologyChanges, Error> {
        let mut ensured = TopologyChanges::default();
        for expected in streams::expected(settings, self.max_payload()) {
            match self.find_stream(&expected.name).await? {
                None => {
                    let name = expected.name.clone();
                    self.jetstream().create_stream(expected).await.map_err(|error| admin(&name, "create", &error))?;
                    ensured.created += 1;
                }
                Some(found) => {
                    let target = streams::target(&found, expected, settings);
                    let differences = streams::differences(&found.config, &target);
                    if differences.is_empty() {
                        ensured.unchanged += 1;
                        continue;
                    }
                    for difference in &differences {
                        tracing::info!("stream is changed: {difference}");
                    }
                    let merged = streams::merged(found.config, target);
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

    /// Compares every field that matters; copies, ages and sizes may be larger.
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
            Some(found) => streams::differences(&found.config, &streams::at_least(&found.config, expected)),
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
}

fn admin(object: &str, action: &'static str, error: &dyn std::error::Error) -> Error {
    let mut reason = error.to_string();
    if reason.contains("insufficient storage") {
        reason += ": the server reserves all that a stream may hold; lower max_bytes of the stream in `streams`, or give JetStream more room";
    }
    Error::Admin { object: object.to_owned(), action, reason }
}
