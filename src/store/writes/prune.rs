//! Deletes what is older than the configuration keeps, in short statements that hold no row for which anybody waits.

use std::collections::BTreeMap;
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Double, Nullable, Text};

use crate::config::Retention;
use crate::engine::ports::{PRUNED_TABLES, Pruned};

use crate::store::connect::Store;
use crate::store::error::Error;
use crate::store::statement::statement;

pub(crate) struct PruneAlerts {
    age: f64,
    limit: i64,
}

statement!(PruneAlerts, "prune_alerts.sql", (Text, BigInt), [Double: age, BigInt: limit]);

pub(crate) struct PruneSessions {
    age: f64,
    limit: i64,
}

statement!(PruneSessions, "prune_sessions.sql", (Text, BigInt), [Double: age, BigInt: limit]);

pub(crate) struct PreviewPrune {
    sessions: Option<f64>,
    alerts: Option<f64>,
    entries: Option<f64>,
    llm_interactions: Option<f64>,
    tool_interactions: Option<f64>,
}

statement!(PreviewPrune, "prune_preview.sql", (Text, BigInt), [
    Nullable<Double>: sessions,
    Nullable<Double>: alerts,
    Nullable<Double>: entries,
    Nullable<Double>: llm_interactions,
    Nullable<Double>: tool_interactions,
]);

impl Store {
    /// Deletes at most about `limit` rows of each kind; nothing is left to delete when the answer is empty.
    ///
    /// # Errors
    /// When the database is unavailable, or the role may not delete.
    pub async fn prune_some(&self, retention: Retention, limit: u32) -> Result<Pruned, Error> {
        let limit = i64::from(limit);
        let counted = self.run(move |connection| prune(connection, retention, limit)).await?;
        Ok(pruned(counted))
    }

    /// What [`Store::prune_some`] would delete altogether. Deletes nothing.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn preview_prune(&self, retention: Retention) -> Result<Pruned, Error> {
        let seconds = |age: Option<Duration>| age.map(|age| age.as_secs_f64());
        let preview = PreviewPrune {
            sessions: seconds(retention.sessions),
            alerts: seconds(retention.alerts),
            entries: seconds(retention.entries),
            llm_interactions: seconds(retention.llm_interactions),
            tool_interactions: seconds(retention.tool_interactions),
        };
        let counted = self.run(move |connection| (&preview).get_results(connection)).await?;
        Ok(pruned(counted))
    }
}

/// Details first, then what a session waits for, then sessions.
fn prune(connection: &mut PgConnection, retention: Retention, limit: i64) -> QueryResult<Vec<(String, i64)>> {
    let mut counted = Vec::new();
    let details = [
        ("tool_interactions", retention.tool_interactions),
        ("llm_interactions", retention.llm_interactions),
        ("entries", retention.entries),
    ];
    for (table, age) in details {
        if let Some(age) = age {
            let deleted = prune_details(connection, table, age, limit)?;
            counted.push((table.to_owned(), i64::try_from(deleted).unwrap_or(i64::MAX)));
        }
    }
    if let Some(age) = retention.alerts {
        counted.extend((&PruneAlerts { age: age.as_secs_f64(), limit }).get_results::<(String, i64)>(connection)?);
    }
    if let Some(age) = retention.sessions {
        counted.extend((&PruneSessions { age: age.as_secs_f64(), limit }).get_results::<(String, i64)>(connection)?);
    }
    Ok(counted)
}

/// Rows of sessions that were settled long enough ago, in the order of the key: what was deleted is not met again. The
/// bound is the first id of the time of the age. An id that its producer dated later waits for its session.
fn prune_details(connection: &mut PgConnection, table: &str, age: Duration, limit: i64) -> QueryResult<usize> {
    diesel::sql_query(format!(
        "WITH old AS (\
           SELECT t.ctid AS place FROM {table} t \
           WHERE t.session_id < (lpad(to_hex((extract(epoch FROM now() - make_interval(secs => $1)) * 1000)::bigint), 12, '0') \
                                 || repeat('0', 20))::uuid \
             AND EXISTS (SELECT FROM alert_sessions s \
                         WHERE s.session_id = t.session_id AND s.settled_at < now() - make_interval(secs => $1)) \
           ORDER BY t.session_id LIMIT $2 FOR UPDATE OF t SKIP LOCKED) \
         DELETE FROM {table} d WHERE d.ctid = ANY (ARRAY(SELECT place FROM old))"
    ))
    .bind::<Double, _>(age.as_secs_f64())
    .bind::<BigInt, _>(limit)
    .execute(connection)
}

fn pruned(counted: Vec<(String, i64)>) -> Pruned {
    let mut rows = BTreeMap::new();
    for (table, count) in counted {
        if let (Some(table), Ok(count)) =
            (PRUNED_TABLES.into_iter().find(|known| *known == table), u64::try_from(count))
            && count > 0
        {
            *rows.entry(table).or_default() += count;
        }
    }
    Pruned { rows }
}
