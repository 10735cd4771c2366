//! Gaps of the newest sessions.

use chrono::{DateTime, Utc};
use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text, Uuid as SqlUuid};

use tarsy_core::execution::results::numbered;
use tarsy_core::readable::presentation::NOTHING;
use tarsy_reports::gaps::{Gaps, ToolGaps, UnknownTool, Unseen, grouped};

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::schema::alert_sessions;
use crate::statement::statement;

/// Sessions that are looked at: about 100,000 rows of the journal.
const MAX_SESSIONS: i64 = 2_000;

pub(crate) struct ReadTools {
    since: DateTime<Utc>,
    limit: i64,
    nothing: &'static str,
    /// The same text as an observation.
    nothing_observed: String,
}

statement!(ReadTools, "gaps_tools.sql" -> (Text, BigInt, BigInt, BigInt, BigInt, BigInt, BigInt), [
    since, limit, nothing, nothing_observed
]);

pub(crate) struct ReadUnknown {
    since: DateTime<Utc>,
    limit: i64,
}

statement!(ReadUnknown, "gaps_unknown.sql" -> (Text, BigInt, BigInt), [since, limit]);

pub(crate) struct ReadUnseen {
    since: DateTime<Utc>,
    limit: i64,
}

statement!(ReadUnseen, "gaps_unseen.sql" -> (SqlUuid, Text), [since, limit]);

impl Store {
    /// The gaps of the newest 2,000 sessions since a time.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn gaps(&self, since: DateTime<Utc>) -> Result<Gaps, Error> {
        self.run(Operation::Command, move |connection| {
            read(connection, since)
        })
        .await
    }
}

fn read(connection: &mut PgConnection, since: DateTime<Utc>) -> QueryResult<Gaps> {
    let limit = MAX_SESSIONS;
    let found: Vec<i32> = alert_sessions::table
        .filter(alert_sessions::created_at.ge(since))
        .select(sql::<diesel::sql_types::Integer>("1"))
        .limit(limit + 1)
        .load(connection)?;
    let found = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let unseen: Vec<Unseen> = (&ReadUnseen { since, limit }).get_results(connection)?;
    let tools: Vec<ToolGaps> = (&ReadTools {
        since,
        limit,
        nothing: NOTHING,
        nothing_observed: numbered(NOTHING, ""),
    })
        .get_results(connection)?;
    let unknown: Vec<UnknownTool> = (&ReadUnknown { since, limit }).get_results(connection)?;
    Ok(Gaps {
        sessions: found.min(limit),
        has_older: found > limit,
        not_seen: grouped(&unseen),
        tools,
        unknown,
    })
}
