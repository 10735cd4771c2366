//! The list of sessions, newest first.

use diesel::pg::PgConnection;
use diesel::prelude::*;

use super::filter::{filtered, session_line};
use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::schema::{alert_sessions, alerts};
use tarsy_reports::{SessionFilter, SessionLine};

/// More sessions are not counted.
pub const MAX_COUNTED: i64 = 10_000;

impl Store {
    /// The number of sessions that match the filter, without its limit; at most [`MAX_COUNTED`].
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn count_sessions(&self, filter: SessionFilter) -> Result<i64, Error> {
        self.run(Operation::Command, move |connection| {
            count(connection, &filter)
        })
        .await
    }

    /// The sessions that match the filter, newest first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn list_sessions(&self, filter: SessionFilter) -> Result<Vec<SessionLine>, Error> {
        self.run(Operation::Command, move |connection| {
            lines(connection, &filter)
        })
        .await
    }
}

fn count(connection: &mut PgConnection, filter: &SessionFilter) -> QueryResult<i64> {
    let mut query = alert_sessions::table
        .left_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
        .select(alert_sessions::session_id)
        .limit(MAX_COUNTED)
        .into_boxed();
    filtered!(query, filter);
    let found: Vec<uuid::Uuid> = query.load(connection)?;
    Ok(i64::try_from(found.len()).unwrap_or(MAX_COUNTED))
}

fn lines(connection: &mut PgConnection, filter: &SessionFilter) -> QueryResult<Vec<SessionLine>> {
    let mut query = alert_sessions::table
        .left_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
        .order(alert_sessions::session_id.desc())
        .limit(i64::from(filter.limit))
        .select(session_line!())
        .into_boxed();
    filtered!(query, filter);
    query.load(connection)
}
