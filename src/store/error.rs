//! What can go wrong with the database, and what that means for a write.

use std::time::Duration;

use diesel::result::DatabaseErrorKind;

use crate::engine::ports::JournalError;

/// Why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be had in time.
    #[error("no database connection: {0}")]
    Pool(#[from] deadpool_diesel::postgres::PoolError),
    /// The pool could not be set up.
    #[error("database pool: {0}")]
    Build(#[from] deadpool_diesel::postgres::BuildError),
    /// The server could not be reached.
    #[error("database connection: {0}")]
    Connect(#[from] diesel::ConnectionError),
    /// The statement failed.
    #[error("database statement: {0}")]
    Statement(#[from] diesel::result::Error),
    /// No answer within the outer bound: the statement may still take effect.
    #[error("database gave no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// The thread that held the connection ended early.
    #[error("database call broke off: {0}")]
    Broken(String),
    /// A migration failed.
    #[error("migration: {0}")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The schema is older than this program, or there is none.
    #[error("database schema lacks migration {0}: run tarsy migrate")]
    SchemaBehind(String),
    /// The schema is newer than this program.
    #[error("database schema has migration {0}, which this version does not know: run a newer tarsy")]
    SchemaTooNew(String),
    /// A row that this version does not understand.
    #[error("{0}")]
    Unreadable(String),
}

impl Error {
    /// Whether the statement may have taken effect or may do so when it is sent again. Not so when the server refused
    /// what it says: the same bytes would be refused again.
    pub(super) fn is_worth_another_try(&self) -> bool {
        match self {
            Self::Pool(_) | Self::Connect(_) | Self::NoAnswer(_) | Self::Broken(_) => true,
            Self::Statement(diesel::result::Error::DatabaseError(kind, _)) => !matches!(
                kind,
                DatabaseErrorKind::UniqueViolation
                    | DatabaseErrorKind::ForeignKeyViolation
                    | DatabaseErrorKind::NotNullViolation
                    | DatabaseErrorKind::CheckViolation
                    | DatabaseErrorKind::ExclusionViolation
                    | DatabaseErrorKind::RestrictViolation
            ),
            Self::Statement(error) => matches!(error, diesel::result::Error::BrokenTransactionManager),
            Self::Build(_)
            | Self::Migration(_)
            | Self::SchemaBehind(_)
            | Self::SchemaTooNew(_)
            | Self::Unreadable(_) => false,
        }
    }
}

impl From<Error> for JournalError {
    fn from(error: Error) -> Self {
        if error.is_worth_another_try() { Self::Away(error.to_string()) } else { Self::Conflict(error.to_string()) }
    }
}
