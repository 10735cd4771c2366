//! Reads of requests, votes and freezes for people.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{
    Array, Binary, Bool, Double, Integer, Jsonb, Nullable, SmallInt, Text, Timestamptz,
    Uuid as SqlUuid,
};
use uuid::Uuid;

use tarsy_core::approvals::RequestId;
use tarsy_core::clock::Moment;
use tarsy_core::ids::SessionId;
use tarsy_reports::{
    AlertUpdateReport, ApprovalDetail, ApprovalFilter, ApprovalRow, AskedAlert, AskedCall,
    CitedResult, ExportedVote, FreezeReport, OtherRequest, Requests, VotePage, VoteReport,
};

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::number;
use crate::schema::alert_updates;
use crate::statement::statement;

/// The most votes that are read of one request: no more are recorded.
const MAX_VOTES: i64 = 1_000;
/// The most freezes that are read.
const MAX_FREEZES: i64 = 1_000;

/// The beginning of a time. The database counts back from its own clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Since {
    at: Option<DateTime<Utc>>,
    ago: Option<f64>,
}

impl From<Option<Moment>> for Since {
    fn from(since: Option<Moment>) -> Self {
        match since {
            None => Self::default(),
            Some(Moment::At(at)) => Self {
                at: Some(at),
                ago: None,
            },
            Some(Moment::Ago(ago)) => Self {
                at: None,
                ago: Some(ago.as_secs_f64()),
            },
        }
    }
}

pub(crate) struct ListApprovals {
    session_id: Option<Uuid>,
    event_seq: Option<i32>,
    since: Since,
    only_open: bool,
    limit: i64,
}

statement!(ListApprovals, "approvals.sql" -> (
    SqlUuid, Integer, Text, Text, Text, Binary, SmallInt, SmallInt, Array<Text>, Nullable<Text>,
    Nullable<Timestamptz>, Nullable<Text>, Timestamptz, Timestamptz, Nullable<Timestamptz>, Nullable<Text>,
    Nullable<Text>, Nullable<Text>, Text, Integer
), [session_id, event_seq, since.at, since.ago, only_open, limit]);

pub(crate) struct ReadCall {
    session_id: Uuid,
    event_seq: i32,
}

statement!(ReadCall, "approval_call.sql" -> (
    (SqlUuid, Nullable<Text>, Text, Text, Text, Jsonb, Double, Text, Bool, Array<Text>),
    Array<Integer>,
    (Nullable<Text>, Nullable<Text>, Nullable<Text>, Nullable<Text>, Bool, Nullable<Text>, Integer, Bool)
), [session_id, event_seq]);

pub(crate) struct ReadResults {
    session_id: Uuid,
    events: Vec<i32>,
}

statement!(ReadResults, "approval_results.sql" -> (Integer, Nullable<Text>, Text), [session_id, events]);

pub(crate) struct ReadOthers {
    session_id: Uuid,
    event_seq: i32,
    call_sha256: [u8; 32],
}

statement!(ReadOthers, "approval_others.sql" -> (
    Integer, Text, Text, Bool, Nullable<Text>, Nullable<Text>, Nullable<Text>
), [call_sha256, session_id, event_seq]);

#[derive(Default)]
pub(crate) struct ReadVotes {
    vote_id: Option<Uuid>,
    session_id: Option<Uuid>,
    event_seq: Option<i32>,
    since: Since,
    after: Option<Uuid>,
    limit: i64,
}

statement!(ReadVotes, "approval_votes.sql" -> (
    (SqlUuid, SqlUuid, Integer, Timestamptz, Text, Text, Array<Text>, Text, Nullable<Text>, Text, Nullable<Text>,
     Binary, Integer, Nullable<Text>),
    Nullable<Text>, Nullable<Text>, Nullable<Text>, Nullable<SmallInt>, Nullable<Timestamptz>, Nullable<Text>,
    Nullable<Timestamptz>, Nullable<Text>
), [vote_id, session_id, event_seq, since.at, since.ago, after, limit]);

pub(crate) struct ReadFreezes {
    only_active: bool,
    limit: i64,
}

statement!(ReadFreezes, "approval_freezes.sql" -> (
    SqlUuid, Timestamptz, Text, Nullable<Text>, Nullable<Timestamptz>, Nullable<Timestamptz>, Nullable<Text>
), [only_active, limit]);

impl Store {
    /// The requests that the filter selects.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Vec<ApprovalRow>, Error> {
        let read = ListApprovals {
            session_id: filter.session.map(|session| session.0),
            event_seq: None,
            since: filter.since.into(),
            only_open: filter.requests == Requests::Open,
            limit: i64::from(filter.limit),
        };
        self.run(Operation::Command, move |connection| {
            (&read).get_results(connection)
        })
        .await
    }

    /// Everything that a person sees of a request; `None` if it is not stored.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn approval(&self, request: RequestId) -> Result<Option<ApprovalDetail>, Error> {
        let read = self.run(Operation::Command, move |connection| {
            // One snapshot, so that the parts agree with each other while people vote.
            connection
                .build_transaction()
                .read_only()
                .repeatable_read()
                .run(|connection| detail(connection, request))
        });
        Ok(read.await?.map(|detail| ApprovalDetail {
            url: self.approval_link(request),
            ..detail
        }))
    }

    /// The votes of a page, in the order of their times; also those that did not count.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn approval_votes(&self, page: VotePage) -> Result<Vec<ExportedVote>, Error> {
        let read = ReadVotes {
            since: page.since.into(),
            after: page.after,
            limit: i64::from(page.limit),
            ..ReadVotes::default()
        };
        self.run(Operation::Command, move |connection| {
            (&read).get_results(connection)
        })
        .await
    }

    /// The vote with this id; `None` while it is not recorded.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn approval_vote(&self, id: Uuid) -> Result<Option<VoteReport>, Error> {
        let read = ReadVotes {
            vote_id: Some(id),
            limit: 1,
            ..ReadVotes::default()
        };
        let vote: Option<ExportedVote> = self
            .run(Operation::Command, move |connection| {
                (&read).get_result(connection).optional()
            })
            .await?;
        Ok(vote.map(|vote| vote.vote))
    }

    /// The freeze that lasts now.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn approval_freeze(&self) -> Result<Option<FreezeReport>, Error> {
        self.run(Operation::Command, active_freeze).await
    }

    /// All freezes, the newest first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn approval_freezes(&self) -> Result<Vec<FreezeReport>, Error> {
        let read = ReadFreezes {
            only_active: false,
            limit: MAX_FREEZES,
        };
        self.run(Operation::Command, move |connection| {
            (&read).get_results(connection)
        })
        .await
    }
}

fn active_freeze(connection: &mut PgConnection) -> QueryResult<Option<FreezeReport>> {
    let read = ReadFreezes {
        only_active: true,
        limit: 1,
    };
    (&read).get_result(connection).optional()
}

fn detail(
    connection: &mut PgConnection,
    request: RequestId,
) -> QueryResult<Option<ApprovalDetail>> {
    let session_id = request.session.0;
    let event_seq = number::int(request.event);
    let row = ListApprovals {
        session_id: Some(session_id),
        event_seq: Some(event_seq),
        since: Since::default(),
        only_open: false,
        limit: 1,
    };
    let row: Option<ApprovalRow> = (&row).get_result(connection).optional()?;
    let Some(row) = row else {
        return Ok(None);
    };
    let call = ReadCall {
        session_id,
        event_seq,
    };
    let CallRow {
        call,
        evidence,
        alert,
    } = (&call).get_result(connection)?;
    let results = ReadResults {
        session_id,
        events: evidence,
    };
    let others = ReadOthers {
        session_id,
        event_seq,
        call_sha256: row.call_sha256.0,
    };
    let votes = ReadVotes {
        session_id: Some(session_id),
        event_seq: Some(event_seq),
        limit: MAX_VOTES,
        ..ReadVotes::default()
    };
    let votes: Vec<ExportedVote> = (&votes).get_results(connection)?;
    let evidence: Vec<CitedResult> = (&results).get_results(connection)?;
    let others: Vec<OtherRequest> = (&others).get_results(connection)?;
    Ok(Some(ApprovalDetail {
        row,
        call,
        alert,
        alert_updates: updates(connection, request.session)?,
        evidence,
        votes_cast: votes.into_iter().map(|vote| vote.vote).collect(),
        others,
        freeze: active_freeze(connection)?,
        url: None,
    }))
}

#[derive(Queryable)]
struct CallRow {
    call: AskedCall,
    evidence: Vec<i32>,
    alert: AskedAlert,
}

fn updates(
    connection: &mut PgConnection,
    session: SessionId,
) -> QueryResult<Vec<AlertUpdateReport>> {
    use alert_updates::{alert_id, created_at, report, session_id, update_no};
    alert_updates::table
        .filter(session_id.eq(session.0))
        .order(update_no)
        .select((update_no, created_at, alert_id, report))
        .load(connection)
}
