//! The report about a dead letter.

use chrono::{DateTime, Utc};
use diesel::prelude::Queryable;
use serde::Serialize;

use super::stored::{Stored, StoredOption};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::DeadReason;

/// An alert that was given up, with masked texts.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Serialize)]
pub struct DeadAlert {
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub alert_id: SessionId,
    /// The time of the first delivery.
    pub received_at: DateTime<Utc>,
    #[diesel(deserialize_as = StoredOption<DeadReason>)]
    pub reason: Option<DeadReason>,
    /// The reason in a sentence.
    pub detail: Option<String>,
    /// The subject that it was published on.
    pub subject: String,
    pub deliveries: i32,
    pub title: Option<String>,
    /// The first 4,000 characters, cleaned and masked; `None` for one that could not be read.
    pub body: Option<String>,
}
