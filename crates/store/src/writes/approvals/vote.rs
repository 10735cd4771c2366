//! The record of a vote.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Jsonb, Nullable, Text};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::approvals::{Refusal, RequestId};
use tarsy_engine::ports::{IdleAlert, Vote, VoteRecord, WakeCause};

use crate::rows::words::sql_word;
use crate::rows::{nul, number};
use crate::statement::statement;
use tarsy_reports::stored::StoredOption;

/// The votes about one request that are recorded, those that did not count included.
const MAX_VOTES: i64 = 100;
/// A rival delivery of the same vote can be faster between two tries; the next try then finds its row.
const MAX_TRIES: usize = 10;

pub(crate) struct RecordVote {
    id: Uuid,
    session_id: Uuid,
    event_seq: i32,
    person: String,
    account: String,
    groups: Vec<String>,
    channel: &'static str,
    address: Option<String>,
    choice: &'static str,
    comment: Option<String>,
    seen: [u8; 32],
    seen_updates: i32,
    refused: Option<&'static str>,
    /// Seconds since the message was stored in its stream.
    age: f64,
    max_votes: i64,
    request: RequestId,
}

statement!(RecordVote, "vote.sql" -> (
    Text, Nullable<Text>, Nullable<Text>, Nullable<Text>, Nullable<Jsonb>, Nullable<Binary>, Nullable<BigInt>
), [
    session_id, refused, seen, choice, person, seen_updates, age, event_seq, id, account, groups, channel, address,
    comment, max_votes,
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VoteAnswer {
    Recorded,
    Repeated,
    TooMany,
    Raced,
}

sql_word!(VoteAnswer);

#[derive(Queryable)]
struct VoteRow {
    answer: VoteAnswer,
    #[diesel(deserialize_as = StoredOption<Refusal>)]
    refused: Option<Refusal>,
    outcome: Option<String>,
    /// All of these are null unless the session is to be queued again; the body may be.
    subject: Option<String>,
    headers: Option<Value>,
    body: Option<Vec<u8>>,
    stream_sequence: Option<i64>,
}

impl RecordVote {
    pub(crate) fn new(vote: Vote) -> Self {
        Self {
            id: vote.id,
            session_id: vote.request.session.0,
            event_seq: number::int(vote.request.event),
            person: nul::replace(vote.person),
            account: nul::replace(vote.account),
            groups: vote.groups.into_iter().map(nul::replace).collect(),
            channel: vote.channel.as_str(),
            address: vote.address.map(nul::replace),
            choice: vote.choice.as_str(),
            comment: vote.comment.map(nul::replace),
            seen: vote.seen.0,
            seen_updates: number::int(vote.seen_updates),
            refused: vote.refused.map(Refusal::as_str),
            age: vote.age.as_secs_f64(),
            max_votes: MAX_VOTES,
            request: vote.request,
        }
    }

    /// Records the vote; `None` if rival deliveries of it were faster each time.
    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Option<VoteRecord>> {
        for _ in 0..MAX_TRIES {
            let row: Option<VoteRow> = self.get_result(connection).optional()?;
            let Some(row) = row else {
                return Ok(Some(refused(Refusal::Unknown)));
            };
            match row.answer {
                VoteAnswer::Recorded | VoteAnswer::Repeated => return Ok(Some(self.record(row))),
                VoteAnswer::TooMany => return Ok(Some(refused(Refusal::TooMany))),
                VoteAnswer::Raced => {}
            }
        }
        Ok(None)
    }

    fn record(&self, row: VoteRow) -> VoteRecord {
        let wakes = match (row.subject, row.headers, row.stream_sequence) {
            (Some(subject), Some(headers), Some(stream_sequence)) => Some(IdleAlert {
                alert_id: self.request.session,
                undecided: false,
                subject,
                headers,
                body: row.body,
                stream_sequence: number::from_big(stream_sequence),
                woken_by: Some(WakeCause::Decision),
            }),
            (None, _, _) | (_, None, _) | (_, _, None) => None,
        };
        VoteRecord {
            refused: row.refused,
            is_repeated: row.answer == VoteAnswer::Repeated,
            outcome: row.outcome,
            wakes,
        }
    }
}

/// A vote without a row.
fn refused(refusal: Refusal) -> VoteRecord {
    VoteRecord {
        refused: Some(refusal),
        is_repeated: false,
        outcome: None,
        wakes: None,
    }
}
