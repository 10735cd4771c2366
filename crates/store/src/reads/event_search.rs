//! Events of a session that contain a text.

use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

use tarsy_reports::{EventSearch, FoundEvent, FoundEvents, Match, Place};

use super::history::Row;
use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::number;
use crate::statement::statement;

/// Bytes of texts that one statement reads, without the last event: about a fifth of a second.
const MAX_BYTES: i64 = 16 * 1024 * 1024;
/// Events of one statement.
const MAX_EVENTS: i64 = 20_000;
/// Characters of an excerpt, and those of them before the match.
const EXCERPT: i32 = 400;
const BEFORE: i32 = 80;

pub(crate) struct SearchEvents {
    session_id: Uuid,
    after: i32,
    limit: i64,
    text: String,
    replaced: String,
    replacements: String,
    max_events: i64,
    max_bytes: i64,
    before: i32,
    characters: i32,
}

type EventColumns = (
    Integer,
    Nullable<SqlUuid>,
    Nullable<Integer>,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Integer>,
    Nullable<Integer>,
    Text,
    Text,
    Text,
    Nullable<Jsonb>,
    Timestamptz,
);

statement!(SearchEvents, "search_events.sql" -> (
    Nullable<Integer>, Nullable<Integer>, Nullable<EventColumns>, Nullable<(Bool, Integer, Text)>
), [session_id, after, limit, text, replaced, replacements, max_events, max_bytes, before, characters]);

#[derive(Queryable)]
struct FoundRow {
    searched_to: Option<i32>,
    last: Option<i32>,
    event: Option<Row>,
    found: Option<MatchRow>,
}

#[derive(Queryable)]
struct MatchRow {
    in_result: bool,
    /// The number of the first character of the match, from 1.
    position: i32,
    excerpt: String,
}

impl Store {
    /// The events of a session that contain a text, in their contents or in the stored results of their calls.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn search_events(&self, search: EventSearch) -> Result<FoundEvents, Error> {
        let read = SearchEvents {
            session_id: search.session.0,
            after: number::int(search.after),
            // One more tells whether there are more.
            limit: i64::from(search.limit) + 1,
            text: search.text.folded().to_owned(),
            replaced: search.text.replaced().to_owned(),
            replacements: search.text.replacements().to_owned(),
            max_events: MAX_EVENTS,
            max_bytes: MAX_BYTES,
            before: BEFORE,
            characters: EXCERPT,
        };
        let rows: Vec<FoundRow> = self
            .run(Operation::Command, move |connection| {
                (&read).get_results(connection)
            })
            .await?;
        Ok(found(rows, &search))
    }
}

fn found(rows: Vec<FoundRow>, search: &EventSearch) -> FoundEvents {
    let first = rows.first();
    let number_of = |at: Option<i32>| at.map_or(search.after, number::from_int);
    let read_to = number_of(first.and_then(|row| row.searched_to));
    let last = number_of(first.and_then(|row| row.last));
    let mut events: Vec<FoundEvent> = rows
        .into_iter()
        .filter_map(|row| Some(found_event(row.event?, row.found?, search)))
        .collect();
    let limit = usize::try_from(search.limit).unwrap_or(usize::MAX);
    let has_more = events.len() > limit;
    events.truncate(limit);
    let searched_to = match events.last() {
        Some(last) if has_more => last.found.event,
        _ => read_to,
    };
    FoundEvents {
        events,
        searched_to,
        is_complete: searched_to >= last,
    }
}

fn found_event(row: Row, found: MatchRow, search: &EventSearch) -> FoundEvent {
    let event = row.into_event(search.session);
    let length = i32::try_from(found.excerpt.chars().count()).unwrap_or(i32::MAX);
    FoundEvent {
        found: Match {
            event: event.session_seq,
            place: if found.in_result {
                Place::Result
            } else {
                Place::Content
            },
            excerpt: search.text.pieces(&found.excerpt),
            cut_before: found.position > BEFORE + 1,
            cut_after: length == EXCERPT,
        },
        event,
    }
}
