//! Settlement: reads whether an alert or session has ended and which dead letter is pending; records the settlement.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{
    BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_engine::ports::{
    DeadLetter, DeadReason, EventIdentity, RunStatus, SettlementStatus, StoredMessage,
};
use tarsy_mask::Mask;
use tarsy_reports::DispositionKind;
use tarsy_reports::stored::StoredOption;

use crate::rows::number;
use crate::statement::statement;

pub(crate) struct ReadSettlementStatus {
    pub alert_id: Uuid,
}

statement!(ReadSettlementStatus, "settlement_status.sql" -> (
    Text, Nullable<Text>, Bool, Integer, Nullable<Text>, Text, Binary, Jsonb, Text, BigInt, Integer,
    Nullable<SqlUuid>, Nullable<Integer>, Nullable<Text>, Nullable<Timestamptz>
), [alert_id]);

#[derive(Queryable)]
pub(crate) struct SettlementRow {
    disposition: DispositionKind,
    #[diesel(deserialize_as = StoredOption<RunStatus>)]
    status: Option<RunStatus>,
    settled: bool,
    last_seq: i32,
    #[diesel(deserialize_as = StoredOption<DeadReason>)]
    dead_reason: Option<DeadReason>,
    detail: String,
    body: Vec<u8>,
    headers: Value,
    subject: String,
    stream_sequence: i64,
    deliveries: i32,
    #[diesel(deserialize_as = StoredOption<ExecutionId>)]
    last_execution: Option<ExecutionId>,
    last_number: Option<i32>,
    last_type: Option<String>,
    last_at: Option<DateTime<Utc>>,
}

impl SettlementRow {
    pub(crate) fn status_of(self, alert_id: SessionId) -> SettlementStatus {
        let over = match self.status {
            Some(status) => status != RunStatus::Running,
            None => self.disposition != DispositionKind::Undecided,
        };
        let last_seq = number::from_int(self.last_seq);
        let last_event = self
            .last_type
            .zip(self.last_at)
            .map(|(event_type, created_at)| EventIdentity {
                session_seq: last_seq,
                execution_id: self.last_execution,
                sequence_number: self.last_number.map(number::from_int),
                event_type: event_type.into(),
                created_at,
            });
        let message = StoredMessage {
            headers: self.headers.clone(),
            subject: self.subject.clone(),
        };
        let owes = match self.dead_reason {
            Some(reason) if !self.settled => Some(DeadLetter {
                alert_id,
                reason,
                detail: self.detail,
                body: self.body,
                headers: self.headers,
                subject: self.subject,
                stream_sequence: number::from_big(self.stream_sequence),
                deliveries: number::from_int(self.deliveries),
            }),
            Some(_) | None => None,
        };
        SettlementStatus {
            over,
            settled: self.settled,
            last_seq,
            last_event,
            message,
            owes,
        }
    }
}

pub(crate) struct Settle {
    session_id: Uuid,
    headers: Value,
    subject: String,
}

statement!(Settle, "settle.sql" -> Bool, [session_id, headers, subject]);

impl Settle {
    /// Masks the headers and the subject. Before the settlement they are kept as received, because the job may have to
    /// be queued again.
    pub(crate) fn masked(session: SessionId, message: StoredMessage, mask: &Mask) -> Self {
        let StoredMessage { headers, subject } = message;
        let subject = subject
            .split('.')
            .map(|word| mask.apply(word))
            .collect::<Vec<_>>()
            .join(".");
        Self {
            session_id: session.0,
            headers: mask.each_text(headers),
            subject,
        }
    }
}
