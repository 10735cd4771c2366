//! A worker claims a session whose lease has expired, or whose owner is known to be dead.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Double, Integer, Nullable, Text, Uuid as SqlUuid};
use serde::Deserialize;
use uuid::Uuid;

use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_core::plan::NEWEST_VERSION;
use tarsy_core::trace_context::TraceContext;
use tarsy_engine::ports::{Claim, ClaimRequest, Claimed, Inherited, Lease};

use crate::rows::words::sql_word;
use crate::rows::{nul, number};
use crate::statement::statement;
use tarsy_reports::stored::Stored;

/// A rival can be faster between two tries; the next try then sees the rival's lease.
const MAX_TRIES: usize = 10;

pub(crate) struct TakeOver {
    session_id: Uuid,
    predecessors: Vec<Uuid>,
    format_version: i32,
    worker: Uuid,
    worker_name: String,
    token: Uuid,
    lease: f64,
    stream_sequence: Option<i64>,
    excuse: f64,
    traceparent: Option<String>,
}

statement!(TakeOver, "claim.sql" -> (Text, Integer, Double, Integer, Bool, Nullable<Text>), [
    session_id, predecessors, excuse, format_version, worker, worker_name, token, lease, traceparent,
    stream_sequence,
]);

/// The running sessions of workers that are dead, as far as no other worker died at their present checkpoint.
pub(crate) struct FindInherited {
    workers: Vec<Uuid>,
}

statement!(FindInherited, "inherited.sql" -> (SqlUuid, Nullable<Text>), [workers]);

#[derive(Queryable)]
pub(crate) struct InheritedRow {
    #[diesel(deserialize_as = Stored<SessionId>)]
    session_id: SessionId,
    traceparent: Option<String>,
}

impl FindInherited {
    pub(crate) fn new(workers: &[WorkerId]) -> Self {
        Self {
            workers: uuids(workers),
        }
    }
}

impl From<InheritedRow> for Inherited {
    fn from(row: InheritedRow) -> Self {
        let trace = row.traceparent.as_deref().and_then(TraceContext::parse);
        Self {
            session_id: row.session_id,
            trace,
        }
    }
}

fn uuids(workers: &[WorkerId]) -> Vec<Uuid> {
    workers.iter().map(|worker| worker.0).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClaimOutcome {
    Taken,
    Settled,
    Ended,
    Incompatible,
    Waiting,
    Busy,
    Raced,
}

sql_word!(ClaimOutcome);

#[derive(Queryable)]
struct ClaimRow {
    outcome: ClaimOutcome,
    epoch: i32,
    /// Seconds until the deadline, or until the lease of another worker expires.
    remaining: f64,
    attempts: i32,
    cancel_requested: bool,
    previous: Option<String>,
}

impl TakeOver {
    pub(crate) fn new(session: SessionId, request: ClaimRequest) -> Self {
        Self {
            session_id: session.0,
            predecessors: uuids(&request.predecessors),
            format_version: number::int(NEWEST_VERSION),
            worker: request.worker.0,
            worker_name: nul::replace(request.worker_name),
            token: request.token,
            lease: request.lease.as_secs_f64(),
            stream_sequence: request.stream_sequence.map(number::big),
            excuse: request.outage_grace.as_secs_f64(),
            traceparent: request.trace.map(|span| span.to_string()),
        }
    }

    pub(crate) fn take(&self, connection: &mut PgConnection) -> QueryResult<Claim> {
        for _ in 0..MAX_TRIES {
            let row: Option<ClaimRow> = self.get_result(connection).optional()?;
            let Some(row) = row else {
                return Ok(Claim::Unknown);
            };
            match row.outcome {
                ClaimOutcome::Taken => return Ok(Claim::Taken(self.claimed(&row))),
                ClaimOutcome::Settled => return Ok(Claim::Ended { settled: true }),
                ClaimOutcome::Ended => return Ok(Claim::Ended { settled: false }),
                ClaimOutcome::Incompatible => return Ok(Claim::Incompatible),
                ClaimOutcome::Waiting => return Ok(Claim::Waiting),
                ClaimOutcome::Busy => return Ok(Claim::Busy(number::from_seconds(row.remaining))),
                ClaimOutcome::Raced => {}
            }
        }
        Ok(Claim::Busy(number::from_seconds(self.lease)))
    }

    fn claimed(&self, row: &ClaimRow) -> Claimed {
        Claimed {
            lease: Lease {
                session_id: SessionId(self.session_id),
                epoch: number::from_int(row.epoch),
                token: self.token,
            },
            remaining: number::from_seconds(row.remaining),
            attempts: number::from_int(row.attempts - 1),
            cancel_requested: row.cancel_requested,
            previous: row.previous.as_deref().and_then(TraceContext::parse),
        }
    }
}
