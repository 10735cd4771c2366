//! Errors of the database, what each means for a write, and what mends it.

mod address;
mod fix;
mod refusal;
mod words;

use std::time::Duration;

use deadpool::managed::{BuildError, PoolError};
use diesel::ConnectionError;
use diesel::result::DatabaseErrorKind;

use tarsy_config::SecretError;
use tarsy_engine::ports::StoreError;

/// The reason why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is invalid: waiting does not help. The text says what is wrong without the address, which may
    /// contain a password.
    #[error("database address (DATABASE_URL): {0}")]
    BadUrl(&'static str),
    /// The pool gave no connection in time.
    #[error("no database connection: {0}")]
    Pool(String),
    /// A file of the connection cannot be used.
    #[error("database credentials: {0}")]
    Secret(#[from] SecretError),
    /// The pool could not be set up.
    #[error("database pool: {0}")]
    Build(#[from] BuildError),
    /// The server, or a pooler before it, refuses this address because of its user, password, database or settings. It
    /// does so until the configuration changes.
    #[error("database refuses the connection: {reason}: {message}")]
    Refused {
        /// The cause and what to do about it.
        reason: &'static str,
        /// The text of the server.
        message: String,
    },
    /// The role lacks these rights, such as `INSERT on entries`.
    #[error("database role {role} lacks {rights}")]
    NotAllowed { role: String, rights: String },
    /// A connection does not have the settings of its connection string.
    #[error(
        "database connection does not keep its settings: a pooler (such as PgBouncer) shares connections between \
         transactions or ignores `options`"
    )]
    SettingsLost,
    /// Another server was promoted, and this process has seen it.
    #[error(
        "database server is an old primary: its timeline is {timeline}, and a server with timeline {newest} was \
         promoted; end the old one"
    )]
    OldPrimary { timeline: i32, newest: i32 },
    /// The server could not be reached.
    #[error("database connection: {}", refusal::one_line(&.0.to_string()))]
    Connect(ConnectionError),
    /// The statement failed.
    #[error("database statement: {0}")]
    Statement(#[source] diesel::result::Error),
    /// The statement took as long as the server lets one take, and failed.
    #[error("database statement: {0}")]
    TimedOut(#[source] diesel::result::Error),
    /// The call took longer than its time limit: the statement may still take effect.
    #[error("database gave no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// The thread of the connection ended before the call did.
    #[error("database call broke off: {0}")]
    Broken(String),
    /// A migration failed.
    #[error("migration: {0}")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The role of a migration may not even read which ones were applied: it does not own the tables.
    #[error("migration: permission denied for role {role}, which lacks {rights}")]
    NotOwner { role: String, rights: String },
    /// A migration did not get its locks in time. No part of it was applied.
    #[error(
        "migration {migration} found its tables in use for {} s: end what uses them (pg_stat_activity shows it) and \
         run tarsy migrate again", .timeout.as_secs()
    )]
    MigrationBlocked {
        migration: String,
        timeout: Duration,
        /// The error of the last try.
        source: Box<Error>,
    },
    /// Another migrator held the lock the whole time.
    #[error("another tarsy migrate has worked on this database for {} s", .0.as_secs())]
    MigrationBusy(Duration),
    /// The program has no migrations, so no schema can fit it.
    #[error("this program was built without migrations")]
    NoMigrations,
    /// The schema is older than this program, or the database has none.
    #[error("database schema lacks migration {0}: run tarsy migrate")]
    SchemaBehind(String),
    /// The schema is newer than this program and does not allow it.
    #[error(
        "database schema has migration {0}, which this version does not know and may not be used with: run a newer tarsy"
    )]
    SchemaTooNew(String),
    /// A row that this version cannot read, such as one with an unknown word.
    #[error("unreadable row: {0}")]
    Unreadable(String),
}

impl Error {
    /// Whether the statement may have taken effect, or may do so when it is sent again. False when the server refused
    /// its values: it would refuse the same bytes again.
    pub(super) fn may_succeed_later(&self) -> bool {
        match self {
            // A changed password takes effect when its file has it, or at the next start.
            Self::Pool(_)
            | Self::Secret(_)
            | Self::Connect(_)
            | Self::Refused { .. }
            | Self::OldPrimary { .. }
            | Self::NoAnswer(_)
            | Self::Broken(_)
            | Self::TimedOut(_) => true,
            Self::Statement(diesel::result::Error::DatabaseError(..)) => !self.is_refusal(),
            Self::Statement(error) => {
                matches!(error, diesel::result::Error::BrokenTransactionManager)
            }
            Self::BadUrl(_)
            | Self::Build(_)
            | Self::Migration(_)
            | Self::MigrationBlocked { .. }
            | Self::MigrationBusy(_)
            | Self::NoMigrations
            | Self::NotOwner { .. }
            | Self::NotAllowed { .. }
            | Self::SettingsLost
            | Self::SchemaBehind(_)
            | Self::SchemaTooNew(_)
            | Self::Unreadable(_) => false,
        }
    }

    /// Whether a pooler has refused the settings in the connection string.
    pub(super) fn is_of_pooler(&self) -> bool {
        matches!(self, Self::Refused { reason, .. } if *reason == refusal::POOLER)
    }

    /// Whether the connection was lost before the server has answered.
    pub(super) fn is_lost_connection(&self) -> bool {
        matches!(
            self,
            Self::Statement(diesel::result::Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                _,
            ))
        )
    }

    /// The same error of a statement that took so long, where the server ends a statement after `limit`. The code of a
    /// time-out (57014) is out of reach, and its text has the language of the server, but its time is never shorter.
    /// One that waits for a row ends sooner, because of the time limit of locks.
    pub(super) fn after(self, took: Duration, limit: Duration) -> Self {
        let Self::Statement(error) = self else {
            return self;
        };
        if took >= limit && has_no_kind(&error) && !is_refusal(&error) {
            Self::TimedOut(error)
        } else {
            Self::Statement(error)
        }
    }

    fn is_refusal(&self) -> bool {
        matches!(self, Self::Statement(error) if is_refusal(error))
    }
}

/// Whether the server has answered with a code that Diesel has no kind for.
fn has_no_kind(error: &diesel::result::Error) -> bool {
    matches!(
        error,
        diesel::result::Error::DatabaseError(DatabaseErrorKind::Unknown, _)
    )
}

/// Whether the server refused the values of a statement and would refuse them again: a violated constraint (SQLSTATE
/// class 23), an invalid value (22), an exceeded limit (54).
fn is_refusal(error: &diesel::result::Error) -> bool {
    let diesel::result::Error::DatabaseError(kind, text) = error else {
        return false;
    };
    match kind {
        DatabaseErrorKind::UniqueViolation
        | DatabaseErrorKind::ForeignKeyViolation
        | DatabaseErrorKind::NotNullViolation
        | DatabaseErrorKind::CheckViolation
        | DatabaseErrorKind::ExclusionViolation
        | DatabaseErrorKind::RestrictViolation => true,
        DatabaseErrorKind::Unknown => words::refuse_a_value(text.message()),
        DatabaseErrorKind::UnableToSendCommand
        | DatabaseErrorKind::SerializationFailure
        | DatabaseErrorKind::ReadOnlyTransaction
        | DatabaseErrorKind::ClosedConnection
        | _ => false,
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        let bad = address::fault(&error).map(Self::BadUrl);
        bad.or_else(|| refusal::classify(&error))
            .unwrap_or(Self::Connect(error))
    }
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        if let diesel::result::Error::DeserializationError(cause) = error {
            let causes = std::iter::successors(Some(&*cause as &dyn std::error::Error), |cause| {
                cause.source()
            });
            Self::Unreadable(
                causes
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(": "),
            )
        } else {
            Self::Statement(error)
        }
    }
}

impl From<PoolError<Self>> for Error {
    fn from(error: PoolError<Self>) -> Self {
        if let PoolError::Backend(error) = error {
            error
        } else {
            Self::Pool(error.to_string())
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let text = refusal::one_line(&error.to_string());
        match (error.may_succeed_later(), error.is_refusal()) {
            (true, _) if matches!(error, Error::TimedOut(_)) => Self::TimedOut(text),
            (true, _) => Self::Unavailable(text),
            (false, true) => Self::Refused(text),
            (false, false) => Self::Conflict(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use diesel::result::Error::DatabaseError;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn after(took: Duration, kind: DatabaseErrorKind, text: &str) -> StoreError {
        Error::Statement(DatabaseError(kind, Box::new(text.to_owned())))
            .after(took, LIMIT)
            .into()
    }

    #[test]
    fn a_statement_that_ended_at_its_limit_has_timed_out_in_every_language() {
        let german = "storniere Anfrage wegen Zeitüberschreitung der Anfrage";
        let failed = |took, kind| after(took, kind, german);
        let text = format!("database statement: {german}");
        assert_eq!(
            failed(LIMIT, DatabaseErrorKind::Unknown),
            StoreError::TimedOut(text.clone())
        );
        let sooner = LIMIT.saturating_sub(Duration::from_millis(1));
        for unavailable in [
            failed(sooner, DatabaseErrorKind::Unknown),
            failed(LIMIT, DatabaseErrorKind::ClosedConnection),
        ] {
            assert_eq!(unavailable, StoreError::Unavailable(text.clone()));
        }
    }

    #[test]
    fn a_refused_value_stays_refused_however_long_its_statement_took() {
        let refused = after(
            LIMIT,
            DatabaseErrorKind::Unknown,
            "row is too big: size 9000",
        );
        assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
    }

    #[test]
    fn a_read_only_server_is_known_by_its_code() {
        let german = Error::Statement(DatabaseError(
            DatabaseErrorKind::ReadOnlyTransaction,
            Box::new("kann INSERT nicht ausführen".to_owned()),
        ));
        assert_eq!(
            german.fix().as_deref(),
            Some("set DATABASE_URL to the primary server")
        );
    }
}
