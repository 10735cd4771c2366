//! Reads for a run that waits for people, and for the rights of a voter.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{
    Array, BigInt, Bool, Double, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
};
use uuid::Uuid;

use tarsy_core::approvals::{Channel, RequestId};
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_engine::ports::{
    Decided, Outcomes, RequestCounts, RequestFacts, StoreError, WaitingCall,
};

use crate::rows::number;
use crate::statement::statement;
use tarsy_reports::stored::StoredOption;

pub(crate) struct ReadOutcomes {
    pub(crate) session_id: Uuid,
}

statement!(ReadOutcomes, "outcomes.sql" -> (
    Integer, Integer, Bool, Nullable<Integer>, Nullable<SqlUuid>, Nullable<Text>, Nullable<Double>, Nullable<Double>,
    Nullable<Text>, Nullable<Timestamptz>, Nullable<Array<Text>>, Nullable<Text>, Nullable<Text>
), [session_id]);

#[derive(Queryable)]
pub(crate) struct OutcomeRow {
    event_seq: i32,
    updates: i32,
    is_frozen: bool,
    /// All columns from here on are null for a session without an open request.
    request: Option<i32>,
    #[diesel(deserialize_as = StoredOption<ExecutionId>)]
    execution_id: Option<ExecutionId>,
    call_id: Option<String>,
    waited: Option<f64>,
    left: Option<f64>,
    #[diesel(deserialize_as = StoredOption<ApprovalOutcome>)]
    outcome: Option<ApprovalOutcome>,
    outcome_at: Option<DateTime<Utc>>,
    decided_by: Option<Vec<String>>,
    comment: Option<String>,
    #[diesel(deserialize_as = StoredOption<Channel>)]
    channel: Option<Channel>,
}

impl OutcomeRow {
    fn request(self) -> Option<WaitingCall> {
        let decided = match (self.outcome, self.outcome_at) {
            (Some(outcome), Some(at)) => Some(Decided {
                outcome,
                by: self.decided_by.unwrap_or_default(),
                comment: self.comment,
                channel: self.channel,
                at,
            }),
            (None, _) | (_, None) => None,
        };
        Some(WaitingCall {
            event: number::from_int(self.request?),
            execution_id: self.execution_id?,
            call_id: self.call_id?,
            waited: number::from_seconds(self.waited?),
            left: number::from_seconds(self.left?),
            decided,
        })
    }
}

impl ReadOutcomes {
    pub(crate) fn read(&self, connection: &mut PgConnection) -> QueryResult<Vec<OutcomeRow>> {
        self.get_results(connection)
    }
}

/// The outcomes of the rows of one snapshot.
///
/// # Errors
/// [`StoreError::Behind`] for a session that is gone.
pub(crate) fn outcomes(session: SessionId, rows: Vec<OutcomeRow>) -> Result<Outcomes, StoreError> {
    let first = rows
        .first()
        .ok_or_else(|| StoreError::Behind(format!("session {session} is gone")))?;
    Ok(Outcomes {
        event_seq: number::from_int(first.event_seq),
        updates: number::from_int(first.updates),
        is_frozen: first.is_frozen,
        requests: rows.into_iter().filter_map(OutcomeRow::request).collect(),
    })
}

pub(crate) struct CountRequests {
    pub(crate) session_id: Uuid,
    pub(crate) enough: i64,
}

statement!(CountRequests, "request_counts.sql" -> (BigInt, BigInt, Double), [enough, session_id]);

impl CountRequests {
    /// The numbers; `None` for a session that is gone.
    pub(crate) fn read(&self, connection: &mut PgConnection) -> QueryResult<Option<RequestCounts>> {
        let row: Option<(i64, i64, f64)> = self.get_result(connection).optional()?;
        Ok(row.map(|(open, of_session, age)| RequestCounts {
            open: u32::try_from(open).unwrap_or(u32::MAX),
            of_session: u32::try_from(of_session).unwrap_or(u32::MAX),
            age: number::from_seconds(age),
        }))
    }
}

/// The most open requests that a gauge reads. `approvals.max_open` permits fewer by default.
const MAX_READ: i64 = 10_000;

/// The sessions and requests that wait for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingForPeople {
    /// Requests that are open.
    pub requests: u32,
    /// Sessions without a worker.
    pub sessions: u32,
    /// The largest part of its time that an open request has waited, 0 to 1; 0 without one.
    pub oldest_ratio: f64,
}

pub(crate) struct ReadWaiting {
    most: i64,
}

statement!(ReadWaiting, "waiting.sql" -> (BigInt, BigInt, Double), [most]);

#[derive(Queryable)]
struct WaitingRow {
    requests: i64,
    sessions: i64,
    oldest_ratio: f64,
}

impl Default for ReadWaiting {
    fn default() -> Self {
        Self { most: MAX_READ }
    }
}

impl ReadWaiting {
    pub(crate) fn read(&self, connection: &mut PgConnection) -> QueryResult<WaitingForPeople> {
        let row: WaitingRow = self.get_result(connection)?;
        Ok(WaitingForPeople {
            requests: u32::try_from(row.requests).unwrap_or(u32::MAX),
            sessions: u32::try_from(row.sessions).unwrap_or(u32::MAX),
            oldest_ratio: row.oldest_ratio.clamp(0.0, 1.0),
        })
    }
}

pub(crate) struct ReadRequestFacts {
    session_id: Uuid,
    event_seq: i32,
}

statement!(ReadRequestFacts, "request_facts.sql" -> (Text, SmallInt, Array<Text>, Bool, Nullable<Text>), [
    session_id, event_seq,
]);

#[derive(Queryable)]
struct FactsRow {
    policy: String,
    quorum: i16,
    channels: Vec<String>,
    other_person: bool,
    asked_by: Option<String>,
}

impl ReadRequestFacts {
    pub(crate) fn new(request: RequestId) -> Self {
        Self {
            session_id: request.session.0,
            event_seq: number::int(request.event),
        }
    }

    pub(crate) fn read(&self, connection: &mut PgConnection) -> QueryResult<Option<RequestFacts>> {
        let row: Option<FactsRow> = self.get_result(connection).optional()?;
        Ok(row.map(|row| RequestFacts {
            policy: row.policy,
            quorum: u8::try_from(row.quorum).unwrap_or(u8::MAX),
            channels: row.channels,
            other_person: row.other_person,
            asked_by: row.asked_by,
        }))
    }
}
