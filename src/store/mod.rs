//! Postgres through Diesel: implements the store's ports.
//!
//! Owns the schema, every SQL statement and the rules of writing: a write is one statement in autocommit, fenced by
//! epoch and token, sent again with the same bytes while its outcome is unknown. Knows no broker and no model; the
//! engine calls it through [`crate::engine::ports`].

mod address;
mod call;
mod compatibility;
mod connect;
pub(crate) mod diagnose;
mod error;
mod fence;
mod journal;
mod migrate;
pub mod reads;
pub mod rows;
#[allow(missing_docs, unreachable_pub, reason = "generated from the database")]
mod schema;
mod sessions;
mod statement;
pub mod writes;

pub use compatibility::{Schema, check_for_worker, check_schema, schema_version};
pub use connect::{ConnectOptions, PoolUse, Store};
pub use diagnose::{DatabaseReport, diagnose};
pub use error::Error;
pub use migrate::{MIGRATION_TIMEOUT, MIGRATIONS, Migrated, migrate};
pub use reads::list::{SessionFilter, SessionLine};
pub use reads::report::{
    AlertReport, ExecutionReport, JoinedAlert, ModelReport, QuestionReport, SessionReport, StageReport, Tokens,
    ToolCallReport,
};
pub use reads::resolve::IdMatch;
pub use writes::cancel::CancelAnswer;
