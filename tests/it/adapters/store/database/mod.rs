//! The schema: migrations, the statements of the previous version, rights, query plans, pruning, words and gaps.

mod schema;
mod migrations;
mod previous;
pub(crate) mod rights;
mod logins;
mod list_filters;
mod plans;
mod hot_updates;
mod prune;
mod words;
mod gaps;
