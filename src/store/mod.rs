//! Postgres through Diesel: implements the store's ports.
//!
//! Owns the schema, every SQL statement and the rules of writing: a write is one statement in autocommit, fenced by
//! epoch and token, sent again with the same bytes while its outcome is unknown. Knows no broker and no model; the
//! engine calls it through [`crate::engine::ports`].

mod address;
mod call;
mod cancel;
mod checkpoint;
mod claim;
mod clean;
mod columns;
mod compatibility;
mod connect;
mod entry;
mod error;
mod examine;
mod fence;
mod finish;
mod history;
mod journal;
mod list;
mod migrate;
mod number;
mod open;
mod prune;
mod receive;
mod record;
mod recover;
mod renew;
mod report;
mod resolve;
#[allow(missing_docs, unreachable_pub, reason = "generated from the database")]
mod schema;
mod sessions;
mod standing;
mod statement;
mod step;
mod sweep;
mod thread;

pub use cancel::CancelAnswer;
pub use compatibility::{Schema, check_for_worker, check_schema, schema_version};
pub use connect::{ConnectOptions, PoolUse, Store};
pub use error::Error;
pub use examine::{Examined, examine};
pub use list::{SessionFilter, SessionLine, SessionSummary};
pub use migrate::{MIGRATION_PATIENCE, MIGRATIONS, Migrated, migrate};
pub use report::{
    AlertReport, ExecutionReport, JoinedAlert, ModelReport, QuestionReport, SessionReport, StageReport, Tokens,
    ToolCallReport,
};
pub use resolve::Found;
