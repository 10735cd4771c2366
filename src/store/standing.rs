//! Whether something is over, what it owes, and its settlement.

use diesel::sql_types::{BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use crate::engine::ports::{DeadLetter, DeadReason, JournalError, Standing};
use crate::investigation::ids::SessionId;

use super::number;
use super::statement::statement;

pub(super) struct ReadStanding {
    pub(super) alert_id: Uuid,
}

statement!(
    ReadStanding,
    "standing.sql",
    (Text, Nullable<Text>, Bool, Integer, Nullable<Text>, Text, Binary, Jsonb, Text, BigInt, Integer),
    [SqlUuid: alert_id]
);

pub(super) type StandingRow =
    (String, Option<String>, bool, i32, Option<String>, String, Vec<u8>, Value, String, i64, i32);

/// The standing of the alert or session `id`.
pub(super) fn standing(id: SessionId, row: StandingRow) -> Result<Standing, JournalError> {
    let (place, status, settled, last_seq, dead_reason, detail, body, headers, subject, sequence, deliveries) = row;
    let owes = match dead_reason.filter(|_| !settled) {
        None => None,
        Some(word) => {
            let reason = DeadReason::parse(&word)
                .ok_or_else(|| JournalError::Conflict(format!("unknown dead letter reason {word:?}")))?;
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
    Ok(Standing { over, settled, last_seq: number::from_int(last_seq), owes })
}

pub(super) struct Settle {
    pub(super) session_id: Uuid,
}

statement!(Settle, "settled.sql", Bool, [SqlUuid: session_id]);
