//! The begin and the end of a freeze of all changes.

use chrono::{DateTime, Utc};
use diesel::sql_types::BigInt;
use uuid::Uuid;

use tarsy_engine::ports::{Freeze, FreezeChange};

use crate::rows::nul;
use crate::statement::statement;

pub(crate) struct RecordFreeze {
    id: Uuid,
    is_end: bool,
    person: String,
    reason: Option<String>,
    until: Option<DateTime<Utc>>,
    age: f64,
}

statement!(RecordFreeze, "freeze.sql" -> BigInt, [id, is_end, person, reason, until, age]);

impl RecordFreeze {
    pub(crate) fn new(change: FreezeChange) -> Self {
        let until = match change.change {
            Freeze::Begin(until) => until,
            Freeze::End => None,
        };
        Self {
            id: change.id,
            is_end: change.change == Freeze::End,
            person: nul::replace(change.person),
            reason: change.reason.map(nul::replace),
            until,
            age: change.age.as_secs_f64(),
        }
    }
}
