//! Requests to cancel: stored with the session, seen by its owner's next renewal or by the next claim.

use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Uuid as SqlUuid};
use serde::Deserialize;

use crate::investigation::ids::SessionId;

use crate::store::call::Operation;
use crate::store::connect::Store;
use crate::store::error::Error;
use crate::store::rows::words::sql_word;
use crate::store::statement::statement;

pub(crate) struct RequestCancel {
    session_id: uuid::Uuid,
}

statement!(RequestCancel, "cancel.sql", (Text, Nullable<SqlUuid>), [SqlUuid: session_id]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CancelOutcome {
    Requested,
    Joined,
    Undecided,
    Ended,
}

sql_word!(CancelOutcome);

#[derive(Queryable)]
struct CancelRow {
    outcome: CancelOutcome,
    joined: Option<SessionId>,
}

/// The answer to a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// The request is stored, and the session's owner will see it.
    Requested,
    /// The alert joined this session, which goes on.
    Joined(SessionId),
    Ended,
    /// No worker has decided yet where the alert goes.
    Undecided,
    /// No worker has seen the alert.
    Unknown,
}

impl Store {
    /// Asks the owner of a session to cancel it. Asking twice is the same as asking once.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn request_cancel(&self, session: SessionId) -> Result<CancelAnswer, Error> {
        let request = RequestCancel { session_id: session.0 };
        let row: Option<CancelRow> =
            self.run(Operation::Cancel, move |connection| (&request).get_result(connection).optional()).await?;
        let Some(CancelRow { outcome, joined }) = row else { return Ok(CancelAnswer::Unknown) };
        match outcome {
            CancelOutcome::Requested => Ok(CancelAnswer::Requested),
            CancelOutcome::Joined => joined
                .map(CancelAnswer::Joined)
                .ok_or_else(|| Error::Unreadable(format!("alert {session} joined no session"))),
            CancelOutcome::Undecided => Ok(CancelAnswer::Undecided),
            CancelOutcome::Ended => Ok(CancelAnswer::Ended),
        }
    }
}
