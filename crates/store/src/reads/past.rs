//! Earlier investigations: those of the same alert, those with given words, and the report of one. Every text is
//! masked again, by the present mask.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::past::{By, Past, PastQuery, PastReport, PastSession, Relation};
use tarsy_core::plan::PastScope;
use tarsy_core::summary::Mark;
use tarsy_engine::ports::{PastSessions, StoreError};
use tarsy_mask::Mask;
use tarsy_reports::IdMatch;
use tarsy_reports::stored::{Stored, StoredOption};

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::{nul, number};
use crate::statement::statement;
use crate::verdicts::read::NewestVerdict;

/// The columns of [`NewestVerdict`].
type NewestColumns = (
    Nullable<Timestamptz>,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Text>,
);

pub(crate) struct PastSame {
    fingerprint: Option<String>,
    session_id: Uuid,
    until: Option<DateTime<Utc>>,
    days: i32,
    limit: i64,
}

statement!(PastSame, "past_same.sql" -> (
    SqlUuid, Timestamptz, Bool, Text, Text, Nullable<Text>, Nullable<Text>, Nullable<Text>, NewestColumns, BigInt,
), [fingerprint, session_id, until, days, limit]);

pub(crate) struct PastWords {
    session_id: Uuid,
    words: String,
    days: i32,
    is_of_all: bool,
    limit: i64,
}

statement!(PastWords, "past_words.sql" -> (
    SqlUuid, Timestamptz, Bool, Text, Text, Nullable<Text>, Nullable<Text>, Nullable<Text>, NewestColumns, BigInt,
), [session_id, words, days, is_of_all, limit]);

pub(crate) struct ReadPastReport {
    wanted: Vec<Uuid>,
    session_id: Uuid,
    is_of_all: bool,
}

statement!(ReadPastReport, "past_report.sql" -> (
    SqlUuid, Timestamptz, Bool, Text, Text, Nullable<Text>, Nullable<Text>, Nullable<Text>, NewestColumns, Text,
), [wanted, session_id, is_of_all]);

/// A row of each statement; `last` is the number of all found, or the analysis.
#[derive(Queryable)]
struct PastRow<T> {
    #[diesel(deserialize_as = Stored<SessionId>)]
    session: SessionId,
    finished_at: DateTime<Utc>,
    is_same: bool,
    chain: String,
    title: String,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    severity: Option<Severity>,
    summary: Option<String>,
    #[diesel(deserialize_as = StoredOption<Mark>)]
    mark: Option<Mark>,
    verdict: NewestVerdict,
    last: T,
}

impl<T> PastRow<T> {
    fn record(self, mask: &Mask) -> PastSession {
        PastSession {
            session: self.session,
            finished_at: self.finished_at,
            relation: if self.is_same {
                Relation::SameAlert
            } else {
                Relation::OtherAlert
            },
            chain: self.chain,
            title: mask.apply(&self.title).into_owned(),
            severity: self.severity,
            summary: self.summary.map(|text| mask.apply(&text).into_owned()),
            mark: self.mark,
            verdict: self.verdict.verdict(|text| mask.apply(&text).into_owned()),
        }
    }
}

fn past(rows: Vec<PastRow<i64>>, days: u32, mask: &Mask) -> Past {
    let total = rows.first().map_or(0, |row| row.last);
    Past {
        total: u32::try_from(total).unwrap_or(u32::MAX),
        days,
        sessions: rows.into_iter().map(|row| row.record(mask)).collect(),
    }
}

/// The completed investigations of the alert of a session before a moment; before now if there is none.
pub(crate) fn same_alert(
    connection: &mut PgConnection,
    read: &PastSame,
    mask: &Mask,
) -> QueryResult<Past> {
    let rows = read.get_results(connection)?;
    Ok(past(rows, number::from_int(read.days), mask))
}

impl PastSame {
    /// Those before a session of the store began.
    pub(crate) fn before(session: Uuid, began_at: DateTime<Utc>, days: u32, limit: u32) -> Self {
        Self {
            fingerprint: None,
            session_id: session,
            until: Some(began_at),
            days: number::int(days),
            limit: i64::from(limit),
        }
    }
}

impl Store {
    /// The newest completed investigations of a fingerprint, for an alert that has no session yet.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn past_of_alert(
        &self,
        alert: SessionId,
        fingerprint: &str,
        query: &PastQuery,
    ) -> Result<Past, StoreError> {
        let read = PastSame {
            fingerprint: Some(nul::replace(fingerprint.to_owned())),
            session_id: alert.0,
            until: None,
            days: number::int(query.days),
            limit: i64::from(query.limit),
        };
        Ok(self.read_same(Operation::Past, read).await?)
    }

    /// The newest completed investigations of the alert of a session, before it began; `None` if there is no such
    /// session.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn past_of_session(
        &self,
        session: SessionId,
        query: &PastQuery,
    ) -> Result<Option<Past>, Error> {
        let Some(began_at) = self.began_at(session).await? else {
            return Ok(None);
        };
        let read = PastSame::before(session.0, began_at, query.days, query.limit);
        self.read_same(Operation::Command, read).await.map(Some)
    }

    async fn began_at(&self, session: SessionId) -> Result<Option<DateTime<Utc>>, Error> {
        use crate::schema::alert_sessions::{created_at, table};
        self.run(Operation::Command, move |connection| {
            table
                .find(session.0)
                .select(created_at)
                .first(connection)
                .optional()
        })
        .await
    }

    async fn read_same(&self, operation: Operation, read: PastSame) -> Result<Past, Error> {
        let mask = self.mask.clone();
        self.run(operation, move |connection| {
            same_alert(connection, &read, &mask)
        })
        .await
    }
}

impl PastSessions for Store {
    async fn past(&self, session: SessionId, query: PastQuery) -> Result<Past, StoreError> {
        let words = match query.by {
            By::SameAlert => {
                let read = PastSame {
                    fingerprint: None,
                    session_id: session.0,
                    until: None,
                    days: number::int(query.days),
                    limit: i64::from(query.limit),
                };
                return Ok(self.read_same(Operation::Past, read).await?);
            }
            By::Words(words) => words,
        };
        let read = PastWords {
            session_id: session.0,
            words,
            days: number::int(query.days),
            is_of_all: query.scope == PastScope::All,
            limit: i64::from(query.limit),
        };
        let mask = self.mask.clone();
        let found = self.run(Operation::Past, move |connection| {
            let rows = (&read).get_results(connection)?;
            Ok(past(rows, query.days, &mask))
        });
        Ok(found.await?)
    }

    async fn past_report(
        &self,
        session: SessionId,
        wanted: String,
        scope: PastScope,
    ) -> Result<Option<PastReport>, StoreError> {
        let wanted = match self.resolve(&wanted).await? {
            IdMatch::One(id) => vec![id.0],
            IdMatch::Many(ids) => ids.into_iter().map(|id| id.0).collect(),
            IdMatch::None | IdMatch::Invalid => return Ok(None),
        };
        let read = ReadPastReport {
            wanted,
            session_id: session.0,
            is_of_all: scope == PastScope::All,
        };
        let mask = self.mask.clone();
        let report = self.run(Operation::Past, move |connection| {
            let rows: Vec<PastRow<String>> = (&read).get_results(connection)?;
            Ok(one(rows, &mask))
        });
        Ok(report.await?)
    }
}

/// The only report; an id that fits several is none.
fn one(mut rows: Vec<PastRow<String>>, mask: &Mask) -> Option<PastReport> {
    let mut row = rows.pop()?;
    if !rows.is_empty() {
        return None;
    }
    let analysis = std::mem::take(&mut row.last);
    Some(PastReport {
        analysis: mask.apply(&analysis).into_owned(),
        record: row.record(mask),
    })
}
