//! An alert that was given up.

use chrono::{DateTime, Utc};
use diesel::prelude::Queryable;
use serde::Serialize;

use crate::engine::ports::DeadReason;
use crate::investigation::ids::SessionId;

/// An alert that was given up, with masked texts.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Serialize)]
pub struct DeadAlert {
    pub alert_id: SessionId,
    /// The time of the first delivery.
    pub received_at: DateTime<Utc>,
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
