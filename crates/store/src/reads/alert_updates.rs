//! The updates of a session's alert.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use serde_json::Value;

use tarsy_core::alert_update::NumberedUpdate;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::StoreError;

use crate::rows::number;
use crate::schema::alert_updates;

#[derive(Queryable)]
pub(crate) struct UpdateRow {
    number: i32,
    report: Value,
}

/// Reads the updates after this number, in order.
pub(crate) fn read(
    connection: &mut PgConnection,
    session: SessionId,
    after: u32,
) -> QueryResult<Vec<UpdateRow>> {
    let later = alert_updates::session_id
        .eq(session.0)
        .and(alert_updates::update_no.gt(number::int(after)));
    alert_updates::table
        .filter(later)
        .order(alert_updates::update_no)
        .select((alert_updates::update_no, alert_updates::report))
        .load(connection)
}

/// The updates of the rows.
///
/// # Errors
/// [`StoreError::Conflict`] for an update that this version does not know.
pub(crate) fn decoded(rows: Vec<UpdateRow>) -> Result<Vec<NumberedUpdate>, StoreError> {
    let mut updates = Vec::with_capacity(rows.len());
    for row in rows {
        let update = serde_json::from_value(row.report)
            .map_err(|error| StoreError::Conflict(format!("stored alert update: {error}")))?;
        updates.push(NumberedUpdate {
            number: number::from_int(row.number),
            update,
        });
    }
    Ok(updates)
}
