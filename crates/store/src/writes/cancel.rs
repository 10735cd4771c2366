//! Requests to cancel: stored with the session, seen by its owner's next renewal or by the next claim. A session
//! without an owner ends at once.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Uuid as SqlUuid};
use serde::Deserialize;

use tarsy_core::ids::SessionId;

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::words::sql_word;
use crate::statement::statement;
use tarsy_reports::stored::StoredOption;

pub(crate) struct RequestCancel {
    session_id: uuid::Uuid,
    owner_is_ignored: bool,
    /// Leads to the page of the session.
    link: Option<String>,
    by: Option<String>,
}

statement!(RequestCancel, "cancel.sql" -> (Text, Nullable<SqlUuid>), [session_id, owner_is_ignored, link, by]);

/// A checkpoint or a vote can be faster between two tries.
const MAX_TRIES: usize = 10;

impl RequestCancel {
    fn write(&self, connection: &mut PgConnection) -> QueryResult<Option<CancelRow>> {
        let mut row: Option<CancelRow> = None;
        for _ in 0..MAX_TRIES {
            row = self.get_result(connection).optional()?;
            if row
                .as_ref()
                .is_none_or(|row| row.outcome != CancelOutcome::Raced)
            {
                break;
            }
        }
        Ok(row)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CancelOutcome {
    Requested,
    Cancelled,
    Joined,
    Ended,
    /// The session has changed meanwhile.
    Raced,
}

sql_word!(CancelOutcome);

#[derive(Queryable)]
struct CancelRow {
    outcome: CancelOutcome,
    #[diesel(deserialize_as = StoredOption<SessionId>)]
    joined: Option<SessionId>,
}

/// The answer to a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// The request is stored, and the session's owner will see it.
    Requested,
    /// No worker had the session or alert, so the statement has ended it.
    Cancelled,
    /// The alert joined this session, which continues.
    Joined(SessionId),
    /// It had ended before.
    Ended,
    /// No worker has seen the alert.
    Unknown,
}

impl Store {
    /// Asks the owner of a session to cancel it, and ends a session or an undecided alert that no worker has. Asking
    /// twice is the same as asking once.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn request_cancel(&self, session: SessionId) -> Result<CancelAnswer, Error> {
        self.request_cancel_by(session, None).await
    }

    /// The same with the name of the person who asks, which the end shows that this statement writes.
    pub(crate) async fn request_cancel_by(
        &self,
        session: SessionId,
        by: Option<String>,
    ) -> Result<CancelAnswer, Error> {
        let link = self.link(session);
        self.cancel_with(RequestCancel {
            session_id: session.0,
            owner_is_ignored: false,
            link,
            by,
        })
        .await
    }

    /// Ends a session although its lease has not expired: its owner was asked, and has not ended it. The owner's later
    /// writes are refused.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn cancel_unanswered(&self, session: SessionId) -> Result<CancelAnswer, Error> {
        let link = self.link(session);
        self.cancel_with(RequestCancel {
            session_id: session.0,
            owner_is_ignored: true,
            link,
            by: None,
        })
        .await
    }

    async fn cancel_with(&self, request: RequestCancel) -> Result<CancelAnswer, Error> {
        let alert = SessionId(request.session_id);
        let row: Option<CancelRow> = self
            .run(Operation::Cancel, move |connection| {
                request.write(connection)
            })
            .await?;
        let Some(CancelRow { outcome, joined }) = row else {
            return Ok(CancelAnswer::Unknown);
        };
        match outcome {
            // After as many tries the request is stored at least.
            CancelOutcome::Requested | CancelOutcome::Raced => Ok(CancelAnswer::Requested),
            CancelOutcome::Cancelled => Ok(CancelAnswer::Cancelled),
            CancelOutcome::Joined => joined
                .map(CancelAnswer::Joined)
                .ok_or_else(|| Error::Unreadable(format!("alert {alert} joined no session"))),
            CancelOutcome::Ended => Ok(CancelAnswer::Ended),
        }
    }
}
