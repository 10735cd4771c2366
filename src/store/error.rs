//! What can go wrong with the database, and what that means for a write.

use std::time::Duration;

use deadpool_diesel::postgres::PoolError;
use diesel::ConnectionError;
use diesel::result::DatabaseErrorKind;

use crate::engine::ports::StoreError;

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
    /// The server, or a pooler before it, refuses this address: user, password, database or a setting. It goes on to do
    /// so until something is configured. Says what to do.
    #[error("database refuses the connection: {reason}: {said}")]
    Refused {
        /// What is wrong.
        reason: &'static str,
        /// What the server said.
        said: String,
    },
    /// The role lacks these rights.
    #[error("database role lacks {0}: GRANT that to it, or use another role")]
    NotAllowed(String),
    /// A connection does not have what was set when it began.
    #[error(
        "database connection does not keep its settings: there is a pooler (such as PgBouncer) between that shares \
         connections; use the address of Postgres itself, or a pool of sessions that passes `options` on"
    )]
    SettingsLost,
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
    /// A migration did not get its locks in time. Nothing of it was applied.
    #[error(
        "migration {migration} found its tables in use for {} s: end what uses them (pg_stat_activity shows it) and \
         run tarsy migrate again", .timeout.as_secs()
    )]
    MigrationBlocked {
        /// Its name.
        migration: String,
        /// How long it was tried.
        timeout: Duration,
        /// Of the last try.
        source: Box<Error>,
    },
    /// Another migrator was at work all the time.
    #[error("another tarsy migrate has worked on this database for {} s", .0.as_secs())]
    MigrationBusy(Duration),
    /// No schema can be right for this program.
    #[error("this program was built without migrations")]
    NoMigrations,
    /// The schema is older than this program, or there is none.
    #[error("database schema lacks migration {0}: run tarsy migrate")]
    SchemaBehind(String),
    /// The schema is newer than this program.
    #[error(
        "database schema has migration {0}, which this version does not know and may not be used with: run a newer tarsy"
    )]
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
            // A password that was changed is a new one for the next start; until then this is as good as unavailable.
            Self::Pool(_) | Self::Connect(_) | Self::Refused { .. } | Self::NoAnswer(_) | Self::Broken(_) => true,
            Self::Statement(diesel::result::Error::DatabaseError(..)) => !self.is_refusal(),
            Self::Statement(error) => matches!(error, diesel::result::Error::BrokenTransactionManager),
            Self::BadUrl(_)
            | Self::Build(_)
            | Self::Migration(_)
            | Self::MigrationBlocked { .. }
            | Self::MigrationBusy(_)
            | Self::NoMigrations
            | Self::NotAllowed(_)
            | Self::SettingsLost
            | Self::SchemaBehind(_)
            | Self::SchemaTooNew(_)
            | Self::Unreadable(_) => false,
        }
    }
}

impl Error {
    /// Whether the server refused what a statement says, so that it would refuse it again: a constraint (SQLSTATE class
    /// 23), a value that it cannot take (22), more than it can hold (54).
    fn is_refusal(&self) -> bool {
        let Self::Statement(diesel::result::Error::DatabaseError(kind, said)) = self else { return false };
        match kind {
            DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation
            | DatabaseErrorKind::ExclusionViolation
            | DatabaseErrorKind::RestrictViolation => true,
            // Diesel knows no more codes than these, and passes none on: what is left has to be read.
            DatabaseErrorKind::Unknown => REFUSED_VALUES.iter().any(|words| said.message().contains(words)),
            DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::SerializationFailure
            | DatabaseErrorKind::ReadOnlyTransaction
            | DatabaseErrorKind::ClosedConnection
            | _ => false,
        }
    }
}

/// What Postgres says of values that it cannot take or hold, whatever is tried: SQLSTATE classes 22 and 54. Words in
/// another language than English are taken for an outage, which ends at the session's deadline.
const REFUSED_VALUES: [&str; 12] = [
    "value too long for type",
    "invalid byte sequence for encoding",
    "unsupported Unicode escape sequence",
    "invalid input syntax for type",
    "invalid escape string",
    " out of range",
    "string is too long for tsvector",
    "index row size",
    "index row requires",
    "row is too big",
    "array size exceeds the maximum allowed",
    "invalid memory alloc request size",
];

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

/// What a server says of a connection that it will not take until something is configured, and what we say of it. The
/// server uses its own language; words in another one than English are waited for, as an outage is.
const REFUSALS: [(&str, &str); 9] = [
    ("unsupported startup parameter", "a pooler (such as PgBouncer) does not pass settings on: use Postgres itself"),
    ("password authentication failed", "user or password is wrong"),
    ("no password supplied", "a password is missing"),
    ("authentication failed for user", "this user is not let in"),
    ("no pg_hba.conf entry", "the server lets this user or machine not in"),
    ("is not permitted to log in", "this role may not log in"),
    ("permission denied for database", "this role may not connect to the database"),
    ("role \"", "there is no such role"),
    ("database \"", "there is no such database"),
];

fn refusal(error: &ConnectionError) -> Option<Error> {
    let ConnectionError::BadConnection(said) = error else { return None };
    let is_named = |words: &str| match words {
        "role \"" | "database \"" => said.contains(&format!("FATAL:  {words}")) && said.contains("does not exist"),
        words => said.contains(words),
    };
    let (_, reason) = REFUSALS.iter().find(|(words, _)| is_named(words))?;
    Some(Error::Refused { reason, said: said.split_whitespace().collect::<Vec<_>>().join(" ") })
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        let bad = bad_address(&error).map(Self::BadUrl);
        bad.or_else(|| refusal(&error)).unwrap_or(Self::Connect(error))
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

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        // libpq wraps its messages.
        let told = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        match (error.is_worth_another_try(), error.is_refusal()) {
            (true, _) => Self::Unavailable(told),
            (false, true) => Self::Refused(told),
            (false, false) => Self::Conflict(told),
        }
    }
}
