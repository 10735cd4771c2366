//! Implements the port [`Outbox`]: reads timeline events for the publisher and for watchers.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{EventKey, Outbox, StoreError, Tail};
use tarsy_reports::stored::StoredOption;
use tarsy_reports::{Excerpt, ExcerptPage};

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::number;
use crate::schema::event_key;
use crate::statement::statement;

pub(crate) struct History {
    session_id: Uuid,
    after: i32,
    limit: i64,
}

statement!(History, "history.sql" -> (
    Integer, Nullable<SqlUuid>, Nullable<Integer>, Nullable<Text>, Nullable<Text>, Nullable<Integer>,
    Nullable<Integer>, Text, Text, Text, Nullable<Jsonb>, Timestamptz
), [session_id, after, limit]);

pub(crate) struct Excerpts {
    session_id: Uuid,
    after: i32,
    limit: i64,
    characters: i32,
}

statement!(Excerpts, "excerpts.sql" -> (
    (Integer, Nullable<SqlUuid>, Nullable<Integer>, Nullable<Text>, Nullable<Text>, Nullable<Integer>,
    Nullable<Integer>, Text, Text, Text, Nullable<Jsonb>, Timestamptz), Bool
), [characters, session_id, after, limit]);

#[derive(Queryable)]
pub(super) struct Row {
    session_seq: i32,
    #[diesel(deserialize_as = StoredOption<ExecutionId>)]
    execution_id: Option<ExecutionId>,
    sequence_number: Option<i32>,
    stage: Option<String>,
    agent: Option<String>,
    iteration: Option<i32>,
    attempt: Option<i32>,
    event_type: String,
    status: String,
    content: String,
    metadata: Option<Value>,
    created_at: DateTime<Utc>,
}

impl Row {
    pub(super) fn into_event(self, session: SessionId) -> TimelineEvent {
        TimelineEvent {
            session_id: session,
            session_seq: number::from_int(self.session_seq),
            execution_id: self.execution_id,
            sequence_number: self.sequence_number.map(number::from_int),
            stage: self.stage,
            agent: self.agent,
            iteration: self.iteration.map(number::from_int),
            attempt: self.attempt.map(number::from_int),
            event_type: self.event_type.into(),
            status: self.status.into(),
            content: self.content,
            metadata: self.metadata.unwrap_or_default(),
            created_at: self.created_at,
            truncated: false,
        }
    }
}

/// All events of a session, in order.
pub(crate) fn all_events(
    connection: &mut PgConnection,
    session: SessionId,
) -> QueryResult<Vec<TimelineEvent>> {
    let read = History {
        session_id: session.0,
        after: 0,
        limit: i64::MAX,
    };
    let rows: Vec<Row> = (&read).get_results(connection)?;
    Ok(rows
        .into_iter()
        .map(|row| row.into_event(session))
        .collect())
}

impl Store {
    /// The events of a page, with the beginnings of their contents.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn excerpts(&self, page: ExcerptPage) -> Result<Vec<Excerpt>, Error> {
        let read = Excerpts {
            session_id: page.session.0,
            after: number::int(page.after),
            limit: i64::from(page.limit),
            characters: number::int(page.characters),
        };
        let rows: Vec<(Row, bool)> = self
            .run(Operation::History, move |connection| {
                (&read).get_results(connection)
            })
            .await?;
        Ok(rows
            .into_iter()
            .map(|(row, is_cut)| Excerpt {
                event: row.into_event(page.session),
                is_cut,
            })
            .collect())
    }
}

impl Outbox for Store {
    async fn events(
        &self,
        session: SessionId,
        after: u32,
        limit: u32,
    ) -> Result<Vec<TimelineEvent>, StoreError> {
        let read = History {
            session_id: session.0,
            after: number::int(after),
            limit: i64::from(limit),
        };
        let rows: Vec<Row> = self
            .run(Operation::History, move |connection| {
                (&read).get_results(connection)
            })
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| row.into_event(session))
            .collect())
    }

    fn tail(&self, session: SessionId) -> Arc<Tail> {
        self.tails.follow(session)
    }

    async fn event_key(&self) -> Result<EventKey, StoreError> {
        let key = self
            .run(Operation::EventKey, |connection| {
                event_key::table.select(event_key::key).first(connection)
            })
            .await?;
        Ok(EventKey(key))
    }
}
