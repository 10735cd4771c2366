//! A worker takes a session whose lease has run out.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Double, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::engine::ports::{Claim, ClaimRequest, Claimed, Lease};
use crate::investigation::ids::SessionId;
use crate::investigation::plan::FORMAT_VERSION;

use crate::store::rows::{clean, number};
use crate::store::statement::statement;

/// A rival can be faster between two looks; then its lease is seen by the next one.
const TRIES: usize = 10;

pub(crate) struct TakeOver {
    session_id: Uuid,
    format_version: i32,
    worker: Uuid,
    worker_name: String,
    token: Uuid,
    lease: f64,
    stream_sequence: Option<i64>,
    excuse: f64,
}

statement!(TakeOver, "claim.sql", (Text, Integer, Double, Integer, Bool), [
    SqlUuid: session_id,
    Double: excuse,
    Integer: format_version,
    SqlUuid: worker,
    Text: worker_name,
    SqlUuid: token,
    Double: lease,
    Nullable<BigInt>: stream_sequence,
]);

type ClaimRow = (String, i32, f64, i32, bool);

impl TakeOver {
    pub(crate) fn new(session: SessionId, request: ClaimRequest) -> Self {
        Self {
            session_id: session.0,
            format_version: number::int(FORMAT_VERSION),
            worker: request.worker.0,
            worker_name: clean::text(request.worker_name),
            token: request.token,
            lease: request.lease.as_secs_f64(),
            stream_sequence: request.stream_sequence.map(number::big),
            excuse: request.outage_grace.as_secs_f64(),
        }
    }

    pub(crate) fn take(&self, connection: &mut PgConnection) -> QueryResult<Claim> {
        for _ in 0..TRIES {
            let row: Option<ClaimRow> = self.get_result(connection).optional()?;
            let Some((outcome, epoch, remaining, attempts, cancel_requested)) = row else {
                return Ok(Claim::Unknown);
            };
            let remaining = number::from_seconds(remaining);
            match outcome.as_str() {
                "taken" => {
                    return Ok(Claim::Taken(Claimed {
                        lease: Lease {
                            session_id: SessionId(self.session_id),
                            epoch: number::from_int(epoch),
                            token: self.token,
                        },
                        remaining,
                        attempts: number::from_int(attempts - 1),
                        cancel_requested,
                    }));
                }
                "settled" => return Ok(Claim::Ended { settled: true }),
                "over" => return Ok(Claim::Ended { settled: false }),
                "too_new" => return Ok(Claim::Incompatible),
                "busy" => return Ok(Claim::Busy(remaining)),
                _ => {}
            }
        }
        Ok(Claim::Busy(number::from_seconds(self.lease)))
    }
}
