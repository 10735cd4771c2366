//! The end of a session, with its last event.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::{Map, Value};

use crate::engine::ports::{DeadReason, Lease, RunStatus, SessionEnd, StoreError};

use crate::store::fence::{Fence, Progress, verdict};
use crate::store::rows::{nul, number};
use crate::store::statement::statement;

pub(crate) struct Finish {
    lease: Lease,
    status: &'static str,
    stop_reason: &'static str,
    final_analysis: Option<String>,
    executive_summary: Option<String>,
    error: Option<String>,
    dead_letter: Option<&'static str>,
    epoch: i32,
    open_status: &'static str,
    at: DateTime<Utc>,
    event_type: String,
    event_status: String,
    event_content: String,
    event_metadata: Value,
}

statement!(Finish, "finish.sql", Integer, [
    SqlUuid: lease.session_id.0,
    Text: status,
    Text: stop_reason,
    Nullable<Text>: final_analysis,
    Nullable<Text>: executive_summary,
    Nullable<Text>: error,
    Nullable<Text>: dead_letter,
    Integer: epoch,
    SqlUuid: lease.token,
    Text: open_status,
    Timestamptz: at,
    Text: event_type,
    Text: event_status,
    Text: event_content,
    Jsonb: event_metadata,
]);

impl Finish {
    pub(crate) fn new(lease: Lease, end: SessionEnd) -> Self {
        Self {
            lease,
            status: end.status.as_str(),
            stop_reason: end.reason.as_str(),
            final_analysis: end.final_analysis.map(nul::replace),
            executive_summary: end.executive_summary.map(nul::replace),
            error: end.error.map(nul::replace),
            dead_letter: end.dead_letter.map(DeadReason::as_str),
            epoch: number::int(lease.epoch),
            open_status: open_status(end.status).as_str(),
            at: end.at,
            event_type: end.event.event_type.into(),
            event_status: end.event.status.into(),
            event_content: nul::replace(end.event.content),
            event_metadata: nul::replace_json(with_reason(end.event.metadata, end.reason.as_str())),
        }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Result<(), StoreError>> {
        let last_seq: Option<i32> = self.get_result(connection).optional()?;
        if last_seq.is_some() {
            return Ok(Ok(()));
        }
        let progress = |fence: &Fence| if fence.is_running() { Progress::Refused } else { Progress::Done };
        verdict(connection, &self.lease, None, progress)
    }
}

/// The status of executions and stages that still run when the session ends.
fn open_status(status: RunStatus) -> RunStatus {
    match status {
        RunStatus::Completed | RunStatus::Running => RunStatus::Cancelled,
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut => status,
    }
}

fn with_reason(metadata: Value, reason: &str) -> Value {
    let mut fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => return other,
    };
    fields.insert("stop_reason".to_owned(), Value::String(reason.to_owned()));
    Value::Object(fields)
}
