//! Settlement: reads whether an alert or session has ended and which dead letter is pending; records the settlement.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use crate::engine::ports::{DeadLetter, DeadReason, RunStatus, SettlementStatus};
use crate::investigation::ids::SessionId;
use crate::investigation::mask::Mask;

use crate::store::rows::number;
use crate::store::rows::words::DispositionKind;
use crate::store::schema::alerts;
use crate::store::statement::statement;

pub(crate) struct ReadSettlementStatus {
    pub(crate) alert_id: Uuid,
}

statement!(
    ReadSettlementStatus,
    "settlement_status.sql",
    (Text, Nullable<Text>, Bool, Integer, Nullable<Text>, Text, Binary, Jsonb, Text, BigInt, Integer),
    [SqlUuid: alert_id]
);

#[derive(Queryable)]
pub(crate) struct SettlementRow {
    disposition: DispositionKind,
    status: Option<RunStatus>,
    settled: bool,
    last_seq: i32,
    dead_reason: Option<DeadReason>,
    detail: String,
    body: Vec<u8>,
    headers: Value,
    subject: String,
    stream_sequence: i64,
    deliveries: i32,
}

impl SettlementRow {
    pub(crate) fn status_of(self, alert_id: SessionId) -> SettlementStatus {
        let over = match self.status {
            Some(status) => status != RunStatus::Running,
            None => self.disposition != DispositionKind::Undecided,
        };
        let owes = self.dead_reason.filter(|_| !self.settled).map(|reason| DeadLetter {
            alert_id,
            reason,
            detail: self.detail,
            body: self.body,
            headers: self.headers,
            subject: self.subject,
            stream_sequence: number::from_big(self.stream_sequence),
            deliveries: number::from_int(self.deliveries),
        });
        SettlementStatus { over, settled: self.settled, last_seq: number::from_int(self.last_seq), owes }
    }
}

pub(crate) struct Settle {
    session_id: Uuid,
    headers: Option<Value>,
    subject: Option<String>,
}

statement!(Settle, "settle.sql", Bool, [
    SqlUuid: session_id,
    Nullable<Jsonb>: headers,
    Nullable<Text>: subject,
]);

impl Settle {
    /// Masks the headers and the subject. Before the settlement they are kept as received, because the job may have to
    /// be queued again.
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
