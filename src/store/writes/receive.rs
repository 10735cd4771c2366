//! An alert's row: inserted before anybody looks into the body, and given up when nobody can make anything of it.

use diesel::sql_types::{BigInt, Binary, Bool, Double, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use crate::engine::ports::{DeadReason, Disposition, Received, StoreError};
use crate::investigation::ids::SessionId;

use crate::store::rows::{clean, number};
use crate::store::statement::statement;

pub(crate) struct Receive {
    alert_id: Uuid,
    delivery: Uuid,
    stream_sequence: i64,
    body_sha256: [u8; 32],
    subject: String,
    headers: Value,
    raw: Option<Vec<u8>>,
}

statement!(Receive, "receive.sql", (Bool, Text, Integer, Nullable<SqlUuid>, Nullable<Text>), [
    SqlUuid: alert_id,
    SqlUuid: delivery,
    BigInt: stream_sequence,
    Binary: body_sha256,
    Text: subject,
    Jsonb: headers,
    Nullable<Binary>: raw,
]);

pub(crate) type ReceivedRow = (bool, String, i32, Option<Uuid>, Option<String>);

impl From<Received> for Receive {
    fn from(received: Received) -> Self {
        Self {
            alert_id: received.alert_id.0,
            delivery: Uuid::new_v4(),
            stream_sequence: number::big(received.stream_sequence),
            body_sha256: received.body_sha256,
            subject: clean::text(received.subject),
            headers: clean::json(received.headers),
            raw: received.body,
        }
    }
}

/// The place of an alert.
pub(crate) fn place(row: ReceivedRow) -> Result<Disposition, StoreError> {
    let (same_body, place, attempts, joined, dead_reason) = row;
    if !same_body {
        return Ok(Disposition::UsedId);
    }
    let unreadable = || StoreError::Conflict(format!("alert in unknown place {place:?}"));
    match place.as_str() {
        "undecided" => Ok(Disposition::Undecided { attempts: number::from_int(attempts) }),
        "opened" => Ok(Disposition::Opened),
        "joined" => joined.map(|session| Disposition::Joined(SessionId(session))).ok_or_else(unreadable),
        "ended" => Ok(Disposition::Ended),
        "dead" => dead_reason.as_deref().and_then(DeadReason::parse).map(Disposition::Dead).ok_or_else(unreadable),
        _ => Err(unreadable()),
    }
}

pub(crate) struct GiveUp {
    pub(crate) reason: &'static str,
    pub(crate) detail: String,
    pub(crate) alert_id: Uuid,
}

statement!(GiveUp, "give_up.sql", Text, [Text: reason, Text: detail, SqlUuid: alert_id]);

/// Takes one attempt off an undecided alert.
pub(crate) struct RefundAttempt {
    /// Random per call.
    pub(crate) id: Uuid,
    pub(crate) alert_id: Uuid,
}

statement!(RefundAttempt, "refund_attempt.sql", (), [SqlUuid: id, SqlUuid: alert_id]);

/// Where the job of an alert is now.
pub(crate) struct Requeued {
    pub(crate) stream_sequence: i64,
    pub(crate) alert_id: Uuid,
}

statement!(Requeued, "requeued.sql", (), [BigInt: stream_sequence, SqlUuid: alert_id]);

/// Since an alert was received for the first time.
pub(crate) struct Waited {
    pub(crate) alert_id: Uuid,
}

statement!(Waited, "waited.sql", Double, [SqlUuid: alert_id]);
