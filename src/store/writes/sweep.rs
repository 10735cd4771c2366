//! What nobody seems to take care of: found by one statement that any worker may run at any time.

use diesel::sql_types::{BigInt, Binary, Bool, Double, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use crate::engine::ports::{IdleAlert, StoreError, Sweep, Swept};
use crate::investigation::ids::SessionId;

use crate::store::rows::number;
use crate::store::statement::statement;

pub(crate) struct FindForgotten {
    interval: f64,
    limit: i64,
    min_age: f64,
}

statement!(FindForgotten, "sweep.sql", (Text, SqlUuid, Bool, Text, Jsonb, Nullable<Binary>, BigInt), [
    Double: interval,
    BigInt: limit,
    Double: min_age,
]);

pub(crate) type ForgottenRow = (String, Uuid, bool, String, Value, Option<Vec<u8>>, i64);

impl FindForgotten {
    pub(crate) fn new(sweep: Sweep) -> Self {
        Self {
            interval: sweep.interval.as_secs_f64(),
            limit: i64::from(sweep.limit),
            min_age: sweep.min_age.as_secs_f64(),
        }
    }
}

/// What a row of the sweep is.
pub(crate) fn swept(row: ForgottenRow) -> Result<Swept, StoreError> {
    let (kind, id, undecided, subject, headers, body, sequence) = row;
    let id = SessionId(id);
    match kind.as_str() {
        "overdue" => Ok(Swept::Overdue(id)),
        "unsettled" => Ok(Swept::Unsettled(id)),
        "idle" => Ok(Swept::Idle(IdleAlert {
            alert_id: id,
            undecided,
            subject,
            headers,
            body,
            stream_sequence: number::from_big(sequence),
        })),
        _ => Err(StoreError::Conflict(format!("sweep found {kind:?}"))),
    }
}
