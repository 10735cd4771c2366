//! What `tarsy doctor` asks a database: who it is, how safe its commits are, and which schema it has.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use diesel::RunQueryDsl;
use diesel::deserialize::QueryableByName;
use diesel::sql_types::{Bool, Text, Timestamptz};

use super::compatibility::{Schema, check_for_worker, check_schema, schema_version};
use super::connect::ConnectOptions;
use super::error::Error;
use super::migrate::with_connection;

/// What a database says of itself.
#[derive(Debug)]
pub struct DatabaseReport {
    /// `15.18`
    pub version: String,
    /// A standby follows, and no commit waits for any: a failover may lose the last ones, and tarsy's promises with them.
    pub loses_commits_at_failover: bool,
    /// How far its clock is ahead of this machine's, in milliseconds; as exact as half of the round trip.
    pub clock_ahead_ms: i64,
    /// One round trip.
    pub round_trip: Duration,
    /// The last migration that it has.
    pub schema: Option<String>,
    /// What the schema is to this program, or what is wrong with it.
    pub fit: Result<Schema, Error>,
    /// Why this role cannot be a worker's, although the schema fits.
    pub lacks: Option<Error>,
    /// It takes no writes: a standby, or set so.
    pub is_read_only: bool,
}

#[derive(QueryableByName)]
struct Said {
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Bool)]
    asynchronous: bool,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
    #[diesel(sql_type = Bool)]
    is_read_only: bool,
}

/// Asks the database that `options` name. Writes nothing.
///
/// # Errors
/// When it cannot be reached.
pub async fn diagnose(options: &ConnectOptions) -> Result<DatabaseReport, Error> {
    let (said, sent, round_trip) = with_connection(options, |connection| {
        let (sent, begun) = (Utc::now(), Instant::now());
        let said: Said = diesel::sql_query(
            "SELECT current_setting('server_version') AS version, \
             current_setting('synchronous_standby_names') = '' AND EXISTS (SELECT FROM pg_stat_replication) AS asynchronous, \
             clock_timestamp() AS now, \
             pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS is_read_only",
        )
        .get_result(connection)?;
        Ok((said, sent, begun.elapsed()))
    })
    .await?;
    let half = chrono::TimeDelta::from_std(round_trip / 2).unwrap_or_default();
    let fit = match check_schema(options).await {
        Err(error) if !matches!(error, Error::SchemaBehind(_) | Error::SchemaTooNew(_)) => return Err(error),
        fit => fit,
    };
    let lacks = match &fit {
        Ok(_) => check_for_worker(options).await.err(),
        Err(_) => None,
    };
    Ok(DatabaseReport {
        // Distributions add their own words: 15.18 (Debian 15.18-0+deb12u1).
        version: said.version.split_whitespace().next().unwrap_or_default().to_owned(),
        loses_commits_at_failover: said.asynchronous,
        clock_ahead_ms: (said.now - (sent + half)).num_milliseconds(),
        round_trip,
        schema: schema_version(options).await?,
        fit,
        lacks,
        is_read_only: said.is_read_only,
    })
}
