//! Arguments of what takes care of the database.

use std::time::Duration;

use clap::Args;

use super::duration;

/// Arguments of `migrate`.
#[derive(Args, Clone, Copy, Debug)]
pub struct MigrateArgs {
    /// How long a migration waits for tables that others use
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub patience: Duration,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}
