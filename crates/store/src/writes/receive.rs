//! The row of an alert: inserted before the body is decoded, updated by each delivery, and given up as a dead letter.

use diesel::prelude::Queryable;
use diesel::sql_types::{Bool, Double, Integer, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{DeadReason, Disposition, Received, StoreError};
use tarsy_reports::DispositionKind;
use tarsy_reports::stored::StoredOption;

use crate::rows::{nul, number};
use crate::statement::statement;
use crate::writes::notify::PlannedRows;

pub(crate) struct Receive {
    alert_id: Uuid,
    delivery: Uuid,
    stream_sequence: i64,
    body_sha256: [u8; 32],
    subject: String,
    headers: Value,
    raw: Option<Vec<u8>>,
}

statement!(Receive, "receive.sql" -> (Bool, Text, Integer, Nullable<SqlUuid>, Nullable<Text>), [
    alert_id, delivery, stream_sequence, body_sha256, subject, headers, raw,
]);

#[derive(Queryable)]
pub(crate) struct ReceivedRow {
    same_body: bool,
    disposition: DispositionKind,
    attempts: i32,
    #[diesel(deserialize_as = StoredOption<SessionId>)]
    joined: Option<SessionId>,
    #[diesel(deserialize_as = StoredOption<DeadReason>)]
    dead_reason: Option<DeadReason>,
}

impl From<Received> for Receive {
    fn from(received: Received) -> Self {
        Self {
            alert_id: received.alert_id.0,
            delivery: Uuid::new_v4(),
            stream_sequence: number::big(received.stream_sequence),
            body_sha256: received.body_sha256,
            subject: nul::replace(received.subject),
            headers: nul::replace_json(received.headers),
            raw: received.body,
        }
    }
}

impl ReceivedRow {
    pub(crate) fn disposition(self) -> Result<Disposition, StoreError> {
        if !self.same_body {
            return Ok(Disposition::UsedId);
        }
        let incomplete = || {
            StoreError::Conflict(format!(
                "the row of a {} alert has no details",
                self.disposition
            ))
        };
        match self.disposition {
            DispositionKind::Undecided => Ok(Disposition::Undecided {
                attempts: number::from_int(self.attempts),
            }),
            DispositionKind::Opened => Ok(Disposition::Opened),
            DispositionKind::Joined => self.joined.map(Disposition::Joined).ok_or_else(incomplete),
            DispositionKind::Ended => Ok(Disposition::Ended),
            DispositionKind::Dead => self
                .dead_reason
                .map(Disposition::Dead)
                .ok_or_else(incomplete),
        }
    }
}

pub(crate) struct GiveUp {
    pub reason: &'static str,
    pub detail: String,
    pub alert_id: Uuid,
    /// Leads to the page of the alert.
    pub link: Option<String>,
    pub notifications: PlannedRows,
}

statement!(GiveUp, "give_up.sql" -> Text, [
    reason, detail, alert_id, link, notifications.routes, notifications.moments,
]);

/// Takes one attempt off an undecided alert.
pub(crate) struct RefundAttempt {
    /// Random; tells this call from a redelivery.
    pub id: Uuid,
    pub alert_id: Uuid,
}

statement!(RefundAttempt, "refund_attempt.sql" -> (), [id, alert_id]);

/// Stores the sequence under which the job of an alert was queued again.
pub(crate) struct Requeued {
    pub stream_sequence: i64,
    pub alert_id: Uuid,
}

statement!(Requeued, "requeued.sql" -> (), [stream_sequence, alert_id]);

/// Reads the seconds since the first delivery of an alert.
pub(crate) struct Waited {
    pub alert_id: Uuid,
}

statement!(Waited, "waited.sql" -> Double, [alert_id]);
