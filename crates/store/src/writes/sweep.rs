//! The sweep: one statement, which any worker may run at any time, finds orphaned sessions and alerts.

use diesel::prelude::Queryable;
use diesel::sql_types::{BigInt, Binary, Bool, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde::Deserialize;
use serde_json::Value;

use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{IdleAlert, Sweep, Swept, WakeCause};

use crate::rows::number;
use crate::rows::words::sql_word;
use crate::statement::statement;
use tarsy_reports::stored::{Stored, StoredOption};

pub(crate) struct FindOrphaned {
    interval: f64,
    limit: i64,
    min_age: f64,
}

statement!(FindOrphaned, "sweep.sql" -> (
    Text, SqlUuid, Bool, Text, Jsonb, Nullable<Binary>, BigInt, Nullable<Text>
), [
    interval, limit, min_age,
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrphanKind {
    Overdue,
    Idle,
    Unsettled,
}

sql_word!(OrphanKind);

#[derive(Queryable)]
pub(crate) struct OrphanRow {
    kind: OrphanKind,
    #[diesel(deserialize_as = Stored<SessionId>)]
    alert_id: SessionId,
    undecided: bool,
    subject: String,
    headers: Value,
    body: Option<Vec<u8>>,
    stream_sequence: i64,
    #[diesel(deserialize_as = StoredOption<WakeCause>)]
    woken_by: Option<WakeCause>,
}

impl FindOrphaned {
    pub(crate) fn new(sweep: Sweep) -> Self {
        Self {
            interval: sweep.interval.as_secs_f64(),
            limit: i64::from(sweep.limit),
            min_age: sweep.min_age.as_secs_f64(),
        }
    }
}

impl From<OrphanRow> for Swept {
    fn from(row: OrphanRow) -> Self {
        match row.kind {
            OrphanKind::Overdue => Self::Overdue(row.alert_id),
            OrphanKind::Unsettled => Self::Unsettled(row.alert_id),
            OrphanKind::Idle => Self::Idle(IdleAlert {
                alert_id: row.alert_id,
                undecided: row.undecided,
                subject: row.subject,
                headers: row.headers,
                body: row.body,
                stream_sequence: number::from_big(row.stream_sequence),
                woken_by: row.woken_by,
            }),
        }
    }
}
