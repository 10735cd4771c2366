//! Requests to cancel: kept with the session, seen by its owner's next renewal or by the next claim.

use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::investigation::ids::SessionId;

use crate::store::connect::Store;
use crate::store::error::Error;
use crate::store::statement::statement;

pub(crate) struct RequestCancel {
    session_id: Uuid,
}

statement!(RequestCancel, "cancel.sql", (Text, Nullable<SqlUuid>), [SqlUuid: session_id]);

/// What became of a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// The owner will see it.
    Requested,
    /// The alert belongs to this session, which goes on.
    Joined(SessionId),
    /// It is over.
    Ended,
    /// Nobody has decided yet what becomes of the alert.
    Undecided,
    /// There is no such alert.
    Unknown,
}

impl Store {
    /// Asks the owner of a session to cancel it. Asking twice is asking once.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn request_cancel(&self, session: SessionId) -> Result<CancelAnswer, Error> {
        let request = RequestCancel { session_id: session.0 };
        let row: Option<(String, Option<Uuid>)> =
            self.run(move |connection| (&request).get_result(connection).optional()).await?;
        Ok(match row {
            None => CancelAnswer::Unknown,
            Some((_, Some(joined))) => CancelAnswer::Joined(SessionId(joined)),
            Some((outcome, None)) => match outcome.as_str() {
                "asked" => CancelAnswer::Requested,
                "undecided" => CancelAnswer::Undecided,
                _ => CancelAnswer::Ended,
            },
        })
    }
}
