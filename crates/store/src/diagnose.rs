//! The database diagnosis of `tarsy doctor`: version, safety of commits, clock, schema and rights.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use diesel::deserialize::QueryableByName;
use diesel::sql_types::{Bool, Text, Timestamptz};
use diesel::{PgConnection, RunQueryDsl};

use super::compatibility::{Schema, check_for_worker, check_schema, schema_version};
use super::connect::ConnectOptions;
use super::error::Error;

/// The state of a database, for `tarsy doctor`.
#[derive(Debug)]
pub struct DatabaseReport {
    /// The version, for example `15.18`
    pub version: String,
    /// The server has a standby, and no commit waits for it: a failover may lose the last confirmed commits.
    pub loses_commits_at_failover: bool,
    /// Milliseconds by which its clock is ahead of this machine's; accurate to half of the round trip.
    pub clock_ahead_ms: i64,
    pub round_trip: Duration,
    /// The last applied migration.
    pub schema: Option<String>,
    /// Whether this program may use the schema.
    pub fit: Result<Schema, Error>,
    /// The reason why a worker could not use this role, although the schema fits.
    pub lacks: Option<Error>,
    /// The server is a standby, or is configured to be read-only.
    pub is_read_only: bool,
}

#[derive(QueryableByName)]
struct ServerRow {
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Bool)]
    asynchronous: bool,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
    #[diesel(sql_type = Bool)]
    is_read_only: bool,
}

/// Reads the server, with the time when the question was sent and the time until its answer.
fn read_server(
    connection: &mut PgConnection,
) -> Result<(ServerRow, DateTime<Utc>, Duration), Error> {
    let sent = Utc::now();
    let begun = Instant::now();
    let row = diesel::sql_query(
        "SELECT current_setting('server_version') AS version, \
         current_setting('synchronous_standby_names') = '' AND EXISTS (SELECT FROM pg_stat_replication) \
         AS asynchronous, clock_timestamp() AS now, \
         pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS is_read_only",
    )
    .get_result(connection)?;
    Ok((row, sent, begun.elapsed()))
}

/// Examines the database. Writes nothing.
///
/// # Errors
/// When the database cannot be reached.
pub async fn diagnose(options: &ConnectOptions) -> Result<DatabaseReport, Error> {
    let (row, sent, round_trip) = options.with_connection(read_server).await?;
    let half = chrono::TimeDelta::from_std(round_trip / 2).unwrap_or_default();
    let fit = match check_schema(options).await {
        Err(error) if !matches!(error, Error::SchemaBehind(_) | Error::SchemaTooNew(_)) => {
            return Err(error);
        }
        fit => fit,
    };
    let lacks = match &fit {
        Ok(_) => check_for_worker(options).await.err(),
        Err(_) => None,
    };
    Ok(DatabaseReport {
        // Distributions add a suffix: 15.18 (Debian 15.18-0+deb12u1).
        version: row
            .version
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned(),
        loses_commits_at_failover: row.asynchronous,
        clock_ahead_ms: (row.now - (sent + half)).num_milliseconds(),
        round_trip,
        schema: schema_version(options).await?,
        fit,
        lacks,
        is_read_only: row.is_read_only,
    })
}
