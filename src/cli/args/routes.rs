//! Arguments of `routes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::checks::header;
use crate::bus::SubjectSuffix;
use crate::investigation::alert::Severity;

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
    /// The queue it would come from: the severity of a body that names none
    #[arg(long, short, value_name = "PRIORITY")]
    pub priority: Option<Severity>,
    /// Further tokens of its subject, after tarsy.alerts and the priority
    #[arg(long, value_name = "TOKENS")]
    pub suffix: Option<SubjectSuffix>,
    /// A header of the message, as 'Name: value'; may be given more than once
    #[arg(long = "header", short = 'H', value_name = "HEADER", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// Read it as a body of this source, as on /hooks/<source> [default: the source whose rule fits]
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// For programs: one JSON object an alert
    #[arg(long)]
    pub json: bool,
}
