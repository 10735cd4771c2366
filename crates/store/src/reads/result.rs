//! A stored result of a tool call.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use uuid::Uuid;

use tarsy_core::ids::SessionId;
use tarsy_core::read_result::{StoredResult, Timeline};

use crate::rows::number;
use crate::statement::statement;

pub(crate) struct ReadResult {
    of_investigation: bool,
    session_id: Uuid,
    event: i32,
}

statement!(ReadResult, "result.sql" -> (Text, Nullable<Text>), [of_investigation, session_id, event]);

#[derive(Queryable)]
struct ResultRow {
    tool: String,
    result: Option<String>,
}

/// The result whose event has this number; `None` if there is none in that timeline.
pub(crate) fn result(
    connection: &mut PgConnection,
    session: SessionId,
    timeline: Timeline,
    event: u32,
) -> QueryResult<Option<StoredResult>> {
    let of_investigation = timeline == Timeline::Investigation;
    let read = ReadResult {
        of_investigation,
        session_id: session.0,
        event: number::int(event),
    };
    let row: Option<ResultRow> = (&read).get_result(connection).optional()?;
    Ok(row.map(|ResultRow { tool, result }| StoredResult { tool, text: result }))
}
