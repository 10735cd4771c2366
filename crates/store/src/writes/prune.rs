//! Deletes rows that are older than the configured retention, in short statements that skip locked rows.

use std::collections::BTreeMap;
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Double, Nullable, Text};
use uuid::Uuid;

use tarsy_config::Retention;
use tarsy_engine::ports::{PRUNED_TABLES, Pruned};

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::number;
use crate::state::Positions;
use crate::statement::statement;

pub(crate) struct PruneAlerts {
    age: f64,
    limit: i64,
}

statement!(PruneAlerts, "prune_alerts.sql" -> (Text, BigInt), [age, limit]);

pub(crate) struct PruneSessions {
    age: f64,
    limit: i64,
    /// False while requests for approval are kept longer.
    with_approvals: bool,
}

statement!(PruneSessions, "prune_sessions.sql" -> (Text, BigInt), [age, limit, with_approvals]);

pub(crate) struct PruneApprovals {
    age: f64,
    limit: i64,
}

statement!(PruneApprovals, "prune_approvals.sql" -> (Text, BigInt), [age, limit]);

pub(crate) struct PruneSkillTexts {
    age: f64,
    limit: i64,
}

statement!(PruneSkillTexts, "prune_skill_texts.sql" -> (Text, BigInt), [age, limit]);

pub(crate) struct PreviewPrune {
    sessions: Option<f64>,
    alerts: Option<f64>,
    entries: Option<f64>,
    llm_interactions: Option<f64>,
    tool_interactions: Option<f64>,
    approvals: Option<f64>,
}

statement!(PreviewPrune, "prune_preview.sql" -> (Text, BigInt), [
    sessions, alerts, entries, llm_interactions, tool_interactions, approvals,
]);

#[derive(Queryable)]
struct DeletedRow {
    table: String,
    count: i64,
}

/// The result of a statement that deletes details.
#[derive(Default, QueryableByName)]
struct Batch {
    #[diesel(sql_type = BigInt)]
    deleted: i64,
    #[diesel(sql_type = Nullable<diesel::sql_types::Uuid>)]
    last: Option<Uuid>,
}

impl Store {
    /// Deletes at most about `limit` rows of each kind. When it returns no counts, no row is left to delete.
    ///
    /// # Errors
    /// When the database is unavailable, or the role may not delete.
    pub async fn prune_some(&self, retention: Retention, limit: u32) -> Result<Pruned, Error> {
        let limit = i64::from(limit);
        let positions = self.positions.clone();
        pruned(
            self.run(Operation::Prune, move |connection| {
                prune(connection, &positions, retention, limit)
            })
            .await?,
        )
    }

    /// Counts the rows that [`Store::prune_some`], called until nothing is left, would delete. Deletes nothing.
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
            approvals: seconds(retention.approvals),
        };
        pruned(
            self.run(Operation::Command, move |connection| {
                (&preview).get_results(connection)
            })
            .await?,
        )
    }
}

/// Deletes details first, then the alerts that keep a session, then sessions.
fn prune(
    connection: &mut PgConnection,
    positions: &Positions,
    retention: Retention,
    limit: i64,
) -> QueryResult<Vec<DeletedRow>> {
    let mut counted = Vec::new();
    let details = [
        ("tool_interactions", retention.tool_interactions),
        ("llm_interactions", retention.llm_interactions),
        ("entries", retention.entries),
    ];
    for (table, age) in details {
        if let Some(age) = age {
            let from = positions.get(table);
            let mut batch = prune_details(connection, table, age, limit, from)?;
            if batch.deleted == 0 && !from.is_nil() {
                // Rows before the position may have been locked, or belong to a session that was settled later.
                batch = prune_details(connection, table, age, limit, Uuid::nil())?;
            }
            positions.set(table, batch.last.unwrap_or_default());
            counted.push(DeletedRow {
                table: table.to_owned(),
                count: batch.deleted,
            });
        }
    }
    if let Some(age) = retention.alerts {
        let alerts = PruneAlerts {
            age: age.as_secs_f64(),
            limit,
        };
        counted.extend((&alerts).get_results::<DeletedRow>(connection)?);
    }
    if let Some(age) = retention.sessions {
        let sessions = PruneSessions {
            age: age.as_secs_f64(),
            limit,
            with_approvals: retention.approvals.is_none(),
        };
        counted.extend((&sessions).get_results::<DeletedRow>(connection)?);
        let texts = PruneSkillTexts {
            age: age.as_secs_f64(),
            limit,
        };
        counted.extend((&texts).get_results::<DeletedRow>(connection)?);
    }
    if let Some(age) = retention.approvals {
        let approvals = PruneApprovals {
            age: age.as_secs_f64(),
            limit,
        };
        counted.extend((&approvals).get_results::<DeletedRow>(connection)?);
    }
    Ok(counted)
}

/// Deletes rows of sessions that were settled long enough ago, in the order of the key, from the session `from` on. The
/// bound is the first UUIDv7 of the cutoff time. A row whose id the producer dated later is deleted with its session.
fn prune_details(
    connection: &mut PgConnection,
    table: &str,
    age: Duration,
    limit: i64,
    from: Uuid,
) -> QueryResult<Batch> {
    diesel::sql_query(format!(
        "WITH old AS (\
           SELECT t.ctid AS place FROM {table} t \
           WHERE t.session_id >= $3 \
             AND t.session_id < (lpad(to_hex((extract(epoch FROM now() - make_interval(secs => $1)) * 1000)::bigint), 12, '0') \
                                 || repeat('0', 20))::uuid \
             AND EXISTS (SELECT FROM alert_sessions s \
                         WHERE s.session_id = t.session_id AND s.settled_at < now() - make_interval(secs => $1)) \
           ORDER BY t.session_id LIMIT $2 FOR UPDATE OF t SKIP LOCKED), \
         gone AS (DELETE FROM {table} d WHERE d.ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING d.session_id) \
         SELECT count(*) AS deleted, (SELECT g.session_id FROM gone g ORDER BY g.session_id DESC LIMIT 1) AS last FROM gone"
    ))
    .bind::<Double, _>(age.as_secs_f64())
    .bind::<BigInt, _>(limit)
    .bind::<diesel::sql_types::Uuid, _>(from)
    .get_result(connection)
}

fn pruned(counted: Vec<DeletedRow>) -> Result<Pruned, Error> {
    let mut rows = BTreeMap::new();
    for DeletedRow { table, count } in counted {
        let known = PRUNED_TABLES.into_iter().find(|known| *known == table);
        let table =
            known.ok_or_else(|| Error::Unreadable(format!("unknown pruned table {table:?}")))?;
        if count > 0 {
            *rows.entry(table).or_default() += number::from_big(count);
        }
    }
    Ok(Pruned { rows })
}
