//! Reads the verdicts of a session, the newest first, and a verdict by its id.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use tarsy_core::verdicts::{PersonVerdict, Rating};
use tarsy_reports::stored::{Stored, StoredOption};

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::schema::verdicts;

#[derive(Queryable)]
struct VerdictRow {
    created_at: DateTime<Utc>,
    person: String,
    channel: String,
    #[diesel(deserialize_as = Stored<Rating>)]
    rating: Rating,
    cause: Option<String>,
    action: Option<String>,
}

impl VerdictRow {
    fn verdict(self) -> PersonVerdict {
        PersonVerdict {
            at: self.created_at,
            person: self.person,
            channel: self.channel,
            rating: self.rating,
            cause: self.cause,
            action: self.action,
        }
    }
}

impl Store {
    /// The verdict with an id; `None` while no worker has recorded it, and if it was refused.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn recorded_verdict(&self, id: Uuid) -> Result<Option<PersonVerdict>, Error> {
        let row: Option<VerdictRow> = self
            .run(Operation::Command, move |connection| {
                verdicts::table
                    .filter(verdicts::verdict_id.eq(id))
                    .select((
                        verdicts::created_at,
                        verdicts::person,
                        verdicts::channel,
                        verdicts::verdict,
                        verdicts::cause,
                        verdicts::action,
                    ))
                    .first(connection)
                    .optional()
            })
            .await?;
        Ok(row.map(VerdictRow::verdict))
    }
}

/// The verdicts of a session.
pub(crate) fn of_session(
    connection: &mut PgConnection,
    session: Uuid,
) -> QueryResult<Vec<PersonVerdict>> {
    let rows: Vec<VerdictRow> = verdicts::table
        .filter(verdicts::session_id.eq(session))
        .order((verdicts::created_at.desc(), verdicts::verdict_id.desc()))
        .select((
            verdicts::created_at,
            verdicts::person,
            verdicts::channel,
            verdicts::verdict,
            verdicts::cause,
            verdicts::action,
        ))
        .load(connection)?;
    Ok(rows.into_iter().map(VerdictRow::verdict).collect())
}

/// The newest verdict of a session as a statement joins it; all columns are null without one.
#[derive(Queryable)]
pub(crate) struct NewestVerdict {
    at: Option<DateTime<Utc>>,
    person: Option<String>,
    channel: Option<String>,
    #[diesel(deserialize_as = StoredOption<Rating>)]
    rating: Option<Rating>,
    cause: Option<String>,
    action: Option<String>,
}

impl NewestVerdict {
    /// The verdict, with its texts as `masked` gives them.
    pub(crate) fn verdict(self, masked: impl Fn(String) -> String) -> Option<PersonVerdict> {
        Some(PersonVerdict {
            at: self.at?,
            person: self.person?,
            channel: self.channel?,
            rating: self.rating?,
            cause: self.cause.map(&masked),
            action: self.action.map(&masked),
        })
    }
}
