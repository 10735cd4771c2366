//! Adds search words to ended sessions that lack them: sessions older than the table of words, sessions of older
//! workers, and those that another statement than `finish.sql` has ended.
//!
//! Every worker reads the whole history once, from the newest session to the oldest. The newest ones are read again
//! each time, since a worker of an earlier version may still end sessions.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::state::{History, Reached};
use crate::statement::statement;
use tarsy_core::search::Searchable;
use tarsy_engine::ports::Worded;

/// Sessions whose words are looked for by one statement.
const BATCH: i64 = 200;

pub(crate) struct WordsBefore {
    settled_at: Option<DateTime<Utc>>,
    session_id: Uuid,
    limit: i64,
}

statement!(WordsBefore, "words_before.sql" -> (SqlUuid, Timestamptz, Bool), [settled_at, session_id, limit]);

#[derive(Queryable)]
struct SettledRow {
    session_id: Uuid,
    settled_at: DateTime<Utc>,
    is_wordless: bool,
}

pub(crate) struct WordsTexts {
    session_id: Uuid,
}

statement!(WordsTexts, "words_texts.sql" -> (Text, Text, Text, Nullable<Text>, Nullable<Text>), [session_id]);

#[derive(Queryable)]
struct TextsRow {
    title: String,
    alert_type: String,
    text: String,
    summary: Option<String>,
    analysis: Option<String>,
}

pub(crate) struct WordsComplete {
    words: Vec<String>,
    session_id: Uuid,
}

statement!(WordsComplete, "words_complete.sql" -> (), [words, session_id]);

/// The result of one batch.
struct Batch {
    sessions: u64,
    reached: Reached,
}

impl Store {
    /// Gives words to some of the sessions that lack them: the newest ones, and further ones of the history.
    ///
    /// # Errors
    /// When the database is unavailable, or the role may not write words.
    pub async fn complete_some_words(&self) -> Result<Worded, Error> {
        let history = self.history.clone();
        self.run(Operation::Words, move |connection| {
            complete(connection, &history)
        })
        .await
    }
}

fn complete(connection: &mut PgConnection, history: &History) -> QueryResult<Worded> {
    let newest = batch(connection, Reached::Nothing)?;
    let before = history.get();
    let older = match before {
        Reached::Nothing => Batch {
            sessions: 0,
            reached: newest.reached,
        },
        Reached::Session { .. } => batch(connection, before)?,
        Reached::End => Batch {
            sessions: 0,
            reached: Reached::End,
        },
    };
    history.set(older.reached);
    Ok(Worded {
        sessions: newest.sessions + older.sessions,
        is_all: older.reached == Reached::End,
    })
}

/// Completes the words of the sessions that were settled before `reached`.
fn batch(connection: &mut PgConnection, reached: Reached) -> QueryResult<Batch> {
    let (settled_at, session_id) = match reached {
        Reached::Session {
            settled_at,
            session_id,
        } => (Some(settled_at), session_id),
        Reached::Nothing | Reached::End => (None, Uuid::nil()),
    };
    let rows: Vec<SettledRow> = (&WordsBefore {
        settled_at,
        session_id,
        limit: BATCH,
    })
        .get_results(connection)?;
    let is_last_batch = i64::try_from(rows.len()).is_ok_and(|count| count < BATCH);
    let reached = match rows.last() {
        Some(row) if !is_last_batch => Reached::Session {
            settled_at: row.settled_at,
            session_id: row.session_id,
        },
        Some(_) | None => Reached::End,
    };
    let mut sessions = 0;
    for row in rows.iter().filter(|row| row.is_wordless) {
        sessions += complete_one(connection, row.session_id)?;
    }
    Ok(Batch { sessions, reached })
}

fn complete_one(connection: &mut PgConnection, session_id: Uuid) -> QueryResult<u64> {
    let row: Option<TextsRow> = (&WordsTexts { session_id })
        .get_result(connection)
        .optional()?;
    let Some(row) = row else { return Ok(0) };
    let words = Searchable {
        title: row.title,
        alert_type: row.alert_type,
        text: row.text,
        summary: row.summary,
        analysis: row.analysis,
    }
    .words();
    let written = (&WordsComplete { words, session_id }).execute(connection)?;
    Ok(u64::try_from(written).unwrap_or_default())
}
