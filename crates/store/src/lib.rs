//! Postgres through Diesel: implements the ports of the store.
//!
//! Owns the schema, every SQL statement and the rules of writing: a write is one statement in autocommit, fenced by
//! epoch and token, and is sent again with the same bytes while its outcome is unknown. The store knows neither the
//! broker nor the models; the engine calls it through [`tarsy_engine::ports`].

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod address;
mod state;
mod connect;
mod pool;
mod migrate;
#[allow(missing_docs, unreachable_pub, reason = "generated from the database")]
mod schema;
mod compatibility;
pub mod diagnose;
mod fit;
mod error;
mod call;
mod statement;
mod verdicts;
pub mod rows;
mod fence;
mod tails;
mod sessions;
mod approvals;
mod journal;
mod notifications;
pub mod writes;
pub mod reads;

pub use call::OPERATIONS;
pub use compatibility::{MIGRATIONS, Schema, check_for_worker, check_schema, schema_version};
pub use connect::{ConnectOptions, PoolUse, Secrets, Store};
pub use diagnose::{DatabaseReport, diagnose};
pub use error::Error;
pub use fit::{DatabaseFit, database_fit};
pub use migrate::{MIGRATION_TIMEOUT, Migrated, migrate};
pub use reads::approvals::waiting::WaitingForPeople;
pub use reads::list::MAX_COUNTED;
pub use tarsy_reports::{
    AlertReport, AlertUpdateReport, DispositionKind, ExecutionReport, IdMatch, JoinedAlert,
    ModelReport, QuestionReport, SessionFilter, SessionLine, SessionReport, StageReport, Tokens,
    ToolCallReport,
};
pub use writes::cancel::CancelAnswer;
