//! An investigation with the follow-up questions about it.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

use tarsy_core::alert::refs::{Refs, SlackThread};
use tarsy_core::alert::{Alert, AlertStatus, Severity};
use tarsy_core::follow_up::{Exchange, PastCall, Thread};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{RunStatus, StoreError};
use tarsy_reports::stored::{Stored, StoredOption};

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::number;
use crate::schema::alert_sessions;
use crate::statement::statement;

/// A prompt shows fewer calls than this.
const MAX_CALLS: i64 = 2_000;
/// A prompt shows fewer answers than this.
const MAX_ANSWERS: i64 = 50;

pub(crate) struct ReadThread {
    session_id: Uuid,
}

statement!(ReadThread, "thread.sql" -> (
    SqlUuid, Text, Text, Nullable<Text>, Nullable<Text>, Text, Text, Nullable<Text>, Text, Text,
    Nullable<Timestamptz>
), [session_id]);

/// The investigation that a thread of a chat belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Queryable)]
pub struct OfChat {
    /// An investigation; never a question.
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub session: SessionId,
    /// The route of notifications that wrote in the thread.
    pub route: String,
    /// The number of questions about the investigation that have a session.
    pub questions: i64,
}

/// The routes of notifications that can have written in a thread of a chat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatRoutes {
    /// Those that can answer.
    pub all: Vec<String>,
    /// Those that post in the thread's channel by themselves.
    pub of_channel: Vec<String>,
}

pub(crate) struct FindOfChat {
    thread: String,
    ts: String,
    routes: Vec<String>,
    of_channel: Vec<String>,
}

statement!(FindOfChat, "thread_of_chat.sql" -> (SqlUuid, Text, BigInt), [thread, ts, routes, of_channel]);

/// The investigation, and the alert that it is about.
#[derive(Queryable)]
struct ThreadRow {
    #[diesel(deserialize_as = Stored<SessionId>)]
    session_id: SessionId,
    #[diesel(deserialize_as = Stored<RunStatus>)]
    status: RunStatus,
    chain: String,
    analysis: Option<String>,
    error: Option<String>,
    alert_type: String,
    title: String,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    severity: Option<Severity>,
    source: String,
    text: String,
    ended_at: Option<DateTime<Utc>>,
}

pub(crate) struct ReadCalls {
    session_id: Uuid,
    limit: i64,
}

statement!(ReadCalls, "thread_calls.sql" -> (Integer, Text, Text, Bool), [session_id, limit]);

#[derive(Queryable)]
struct CallRow {
    session_seq: i32,
    tool: String,
    arguments: String,
    is_error: bool,
}

pub(crate) struct ReadAsked {
    session_id: Uuid,
    limit: i64,
}

statement!(ReadAsked, "thread_asked.sql" -> (Text, Text, BigInt), [session_id, limit]);

#[derive(Queryable)]
struct AnswerRow {
    question: String,
    answer: String,
    /// The number of answers, including those that are not read.
    total: i64,
}

impl Store {
    /// The investigation that `session` is, or that it asks about, with everything that was answered about it since;
    /// `None` when there is no such session.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn thread(&self, session: SessionId) -> Result<Option<Thread>, StoreError> {
        Ok(self
            .run(Operation::Thread, move |connection| {
                read_thread(connection, session.0)
            })
            .await?)
    }

    /// The newest investigation of which one of these routes has written in a thread of a chat; `None` without one.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn thread_of_chat(
        &self,
        thread: &SlackThread,
        routes: ChatRoutes,
    ) -> Result<Option<OfChat>, StoreError> {
        let read = FindOfChat {
            thread: format!("{}/{}", thread.channel, thread.ts),
            ts: thread.ts.clone(),
            routes: routes.all,
            of_channel: routes.of_channel,
        };
        Ok(self
            .run(Operation::Thread, move |connection| {
                (&read).get_result(connection).optional()
            })
            .await?)
    }

    /// The investigation that `session` is or asks about, followed by the questions about it that have a session, in
    /// their order; empty when there is no such session.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn thread_sessions(&self, session: SessionId) -> Result<Vec<SessionId>, Error> {
        self.run(Operation::Command, move |connection| {
            read_sessions(connection, session)
        })
        .await
    }
}

fn read_sessions(connection: &mut PgConnection, session: SessionId) -> QueryResult<Vec<SessionId>> {
    use alert_sessions::{created_at, parent_id, session_id};
    let found: Option<Option<Uuid>> = alert_sessions::table
        .find(session.0)
        .select(parent_id)
        .first(connection)
        .optional()?;
    let Some(parent) = found else {
        return Ok(Vec::new());
    };
    let root = parent.map_or(session, SessionId);
    let questions: Vec<Uuid> = alert_sessions::table
        .filter(parent_id.eq(root.0))
        .order((created_at, session_id))
        .select(session_id)
        .load(connection)?;
    let questions = questions.into_iter().map(SessionId);
    Ok(std::iter::once(root).chain(questions).collect())
}

fn read_thread(connection: &mut PgConnection, session: Uuid) -> QueryResult<Option<Thread>> {
    let row: Option<ThreadRow> = (&ReadThread {
        session_id: session,
    })
        .get_result(connection)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    let session_id = row.session_id.0;
    let calls: Vec<CallRow> = (&ReadCalls {
        session_id,
        limit: MAX_CALLS,
    })
        .get_results(connection)?;
    let answers: Vec<AnswerRow> = (&ReadAsked {
        session_id,
        limit: MAX_ANSWERS,
    })
        .get_results(connection)?;
    let total = answers.first().map_or(0, |answer| answer.total);
    let calls = calls.into_iter().map(|call| PastCall {
        session_seq: number::from_int(call.session_seq),
        tool: call.tool,
        arguments: call.arguments,
        is_error: call.is_error,
    });
    Ok(Some(Thread {
        root: row.session_id,
        status: row.status,
        ended_at: row.ended_at,
        chain: row.chain,
        alert: Alert {
            source: row.source,
            alert_type: row.alert_type,
            title: row.title,
            severity: row.severity.unwrap_or_default(),
            severity_word: None,
            status: AlertStatus::Firing,
            ignored_because: None,
            at: None,
            fingerprint: String::new(),
            members: Vec::new(),
            reports: Vec::new(),
            runbook_url: None,
            refs: Refs::default(),
            text: row.text,
        },
        analysis: row.analysis,
        error: row.error,
        calls: calls.collect(),
        older: u32::try_from(total.saturating_sub(MAX_ANSWERS)).unwrap_or_default(),
        asked: answers
            .into_iter()
            .rev()
            .map(|row| Exchange {
                question: row.question,
                answer: row.answer,
            })
            .collect(),
    }))
}
