//! Arguments of `routes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::checks::MessageArgs;
use tarsy_bus::SubjectSuffix;

/// The commands about the routes of alerts.
#[derive(Clone, Debug, Subcommand)]
pub enum RoutesCommand {
    /// Show the route of an alert with its chain, its tools and its other actions, and why it is this one
    Test(RoutesTestArgs),
}

/// Arguments of `routes test`.
#[derive(Args, Clone, Debug)]
pub struct RoutesTestArgs {
    /// The alert: any text or JSON; - reads standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Further tokens of its subject, after tarsy.alerts and the priority
    #[arg(long, value_name = "TOKENS")]
    pub suffix: Option<SubjectSuffix>,
    #[command(flatten)]
    pub message: MessageArgs,
    /// For programs: one JSON object an alert
    #[arg(long)]
    pub json: bool,
}
