//! Whether something is over, what it owes, and its settlement.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use crate::engine::ports::{DeadLetter, DeadReason, SettlementStatus, StoreError};
use crate::investigation::ids::SessionId;
use crate::investigation::mask::Mask;

use crate::store::rows::number;
use crate::store::schema::alerts;
use crate::store::statement::statement;

pub(crate) struct ReadSettlementStatus {
    pub(crate) alert_id: Uuid,
}

statement!(
    ReadSettlementStatus,
    "standing.sql",
    (Text, Nullable<Text>, Bool, Integer, Nullable<Text>, Text, Binary, Jsonb, Text, BigInt, Integer),
    [SqlUuid: alert_id]
);

pub(crate) type StandingRow =
    (String, Option<String>, bool, i32, Option<String>, String, Vec<u8>, Value, String, i64, i32);

/// The standing of the alert or session `id`.
pub(crate) fn standing(id: SessionId, row: StandingRow) -> Result<SettlementStatus, StoreError> {
    let (place, status, settled, last_seq, dead_reason, detail, body, headers, subject, sequence, deliveries) = row;
    let owes = match dead_reason.filter(|_| !settled) {
        None => None,
        Some(word) => {
            let reason = DeadReason::parse(&word)
                .ok_or_else(|| StoreError::Conflict(format!("unknown dead letter reason {word:?}")))?;
            Some(DeadLetter {
                alert_id: id,
                reason,
                detail,
                body,
                headers,
                subject,
                stream_sequence: number::from_big(sequence),
                deliveries: number::from_int(deliveries),
            })
        }
    };
    let over = match status {
        Some(status) => status != "running",
        None => place != "undecided",
    };
    Ok(SettlementStatus { over, settled, last_seq: number::from_int(last_seq), owes })
}

pub(crate) struct Settle {
    session_id: Uuid,
    headers: Option<Value>,
    subject: Option<String>,
}

statement!(Settle, "settled.sql", Bool, [
    SqlUuid: session_id,
    Nullable<Jsonb>: headers,
    Nullable<Text>: subject,
]);

impl Settle {
    /// Settles with what may be kept of the message: until then its job may have to be queued again as it came.
    pub(crate) fn masked(connection: &mut PgConnection, session: SessionId, mask: &Mask) -> QueryResult<Self> {
        let of_alert = alerts::table.filter(alerts::alert_id.eq(session.0));
        let message: Option<(Value, String)> =
            of_alert.select((alerts::headers, alerts::subject)).first(connection).optional()?;
        let (headers, subject) = message.unzip();
        Ok(Self {
            session_id: session.0,
            headers: headers.map(|headers| mask.each_text(headers)),
            subject: subject
                .map(|subject| subject.split('.').map(|word| mask.apply(word)).collect::<Vec<_>>().join(".")),
        })
    }
}
