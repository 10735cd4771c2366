//! Reads judged sessions in pages, for the export.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::Mark;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::RunStatus;
use tarsy_reports::stored::{Stored, StoredOption};
use tarsy_reports::{JudgedAlert, JudgedProvider, JudgedSession, ShownStatus};

use super::read::NewestVerdict;
use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::statement::statement;

/// Sessions of one page: a plan can be large.
const PAGE: i64 = 50;

pub(crate) struct ExportVerdicts {
    after: Uuid,
    since: Option<f64>,
    limit: i64,
}

statement!(ExportVerdicts, "verdicts_export.sql" -> (
    SqlUuid, Timestamptz, Text, Text, Text, Nullable<Text>, Text, Nullable<Jsonb>, Text, Nullable<Text>, Nullable<Text>,
    Nullable<Text>,
    (Nullable<Timestamptz>, Nullable<Text>, Nullable<Text>, Nullable<Text>, Nullable<Text>, Nullable<Text>),
), [after, since, limit]);

#[derive(Queryable)]
struct JudgedRow {
    #[diesel(deserialize_as = Stored<SessionId>)]
    session_id: SessionId,
    created_at: DateTime<Utc>,
    chain: String,
    alert_type: String,
    title: String,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    severity: Option<Severity>,
    body: String,
    plan: Option<Value>,
    #[diesel(deserialize_as = ShownStatus)]
    status: RunStatus,
    #[diesel(deserialize_as = StoredOption<Mark>)]
    mark: Option<Mark>,
    summary: Option<String>,
    analysis: Option<String>,
    verdict: NewestVerdict,
}

impl JudgedRow {
    fn record(self) -> Option<JudgedSession> {
        let plan = self.plan.as_ref();
        Some(JudgedSession {
            session_id: self.session_id,
            created_at: self.created_at,
            chain: self.chain,
            alert: JudgedAlert {
                alert_type: self.alert_type,
                title: self.title,
                severity: self.severity,
                body: self.body,
            },
            providers: plan.map(JudgedProvider::all_of).unwrap_or_default(),
            plan: self.plan,
            status: self.status,
            mark: self.mark,
            summary: self.summary,
            analysis: self.analysis,
            verdict: self.verdict.verdict(|text| text)?,
        })
    }
}

impl Store {
    /// A page of judged sessions behind `after`, by their ids; empty behind the last one. With `since`, only those
    /// whose newest verdict is not older.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn judged_sessions(
        &self,
        after: Option<SessionId>,
        since: Option<Duration>,
    ) -> Result<Vec<JudgedSession>, Error> {
        let read = ExportVerdicts {
            after: after.map(|session| session.0).unwrap_or_default(),
            since: since.map(|age| age.as_secs_f64()),
            limit: PAGE,
        };
        let rows: Vec<JudgedRow> = self
            .run(Operation::Command, move |connection| {
                (&read).get_results(connection)
            })
            .await?;
        Ok(rows.into_iter().filter_map(JudgedRow::record).collect())
    }
}
