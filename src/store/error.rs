//! What can go wrong with the database, and what that means for a write.

use std::time::Duration;

use deadpool_diesel::postgres::PoolError;
use diesel::ConnectionError;
use diesel::result::DatabaseErrorKind;

use crate::engine::ports::JournalError;

/// Why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be understood: waiting does not help. Says what is wrong, without the address, which may hold
    /// a password.
    #[error("database address (DATABASE_URL): {0}")]
    BadUrl(&'static str),
    /// No connection could be had in time.
    #[error("no database connection: {0}")]
    Pool(PoolError),
    /// The pool could not be set up.
    #[error("database pool: {0}")]
    Build(#[from] deadpool_diesel::postgres::BuildError),
    /// The server could not be reached.
    #[error("database connection: {0}")]
    Connect(ConnectionError),
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
            Self::BadUrl(_)
            | Self::Build(_)
            | Self::Migration(_)
            | Self::SchemaBehind(_)
            | Self::SchemaTooNew(_)
            | Self::Unreadable(_) => false,
        }
    }
}

/// What libpq says of an address that it cannot understand, and what we say of it. libpq quotes the address, and a
/// password with a `%` in it is the commonest reason.
const BAD_ADDRESSES: [(&str, &str); 14] = [
    ("invalid percent-encoded token", "a % that begins no character code: write %25 for the % of a password"),
    ("in percent-encoded value", "%00 is no character"),
    ("use percent-encoded spaces", "a space: write %20"),
    ("in connection info string", "neither a postgres:// URL nor key=value words"),
    ("invalid connection option", "neither a postgres:// URL nor key=value words that libpq knows"),
    ("invalid URI query parameter", "a parameter after the ? that libpq does not know"),
    ("separator \"=\" in URI query parameter", "a parameter after the ? that is not key=value"),
    ("in URI", "not a URL of the form postgres://user:password@host:port/database"),
    ("for connection option", "an option with a value that is not a number"),
    ("invalid port number", "a port that is no port"),
    ("value: \"", "an option with a value that libpq does not know"),
    ("could not match", "not as many ports as hosts"),
    ("definition of service", "a service that the service file does not define"),
    ("invalid require_auth", "a require_auth that libpq does not know"),
];

fn bad_address(error: &ConnectionError) -> Option<&'static str> {
    if matches!(error, ConnectionError::InvalidCString(_)) {
        return Some("a NUL byte");
    }
    let ConnectionError::BadConnection(said) = error else { return None };
    if said.starts_with("connection to server") {
        // What a server says may hold any words.
        return None;
    }
    BAD_ADDRESSES.iter().find(|(libpq, _)| said.contains(libpq)).map(|(_, reason)| *reason)
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        bad_address(&error).map_or_else(|| Self::Connect(error), Self::BadUrl)
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        if let PoolError::Backend(deadpool_diesel::Error::Connection(error)) = error {
            error.into()
        } else {
            Self::Pool(error)
        }
    }
}

impl From<Error> for JournalError {
    fn from(error: Error) -> Self {
        // libpq wraps its messages.
        let told = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        if error.is_worth_another_try() { Self::Away(told) } else { Self::Conflict(told) }
    }
}
