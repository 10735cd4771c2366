//! Arguments of `notify` and `destinations`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::checks::JsonArgs;
use tarsy_core::notification::Moment;

/// The commands about notifications.
#[derive(Clone, Debug, Subcommand)]
pub enum NotifyCommand {
    /// Send a message that says it is a test to one route, as a worker would
    Test(NotifyTestArgs),
}

/// Arguments of `notify test`.
#[derive(Args, Clone, Debug)]
pub struct NotifyTestArgs {
    /// The name of the route, a key of `notifications`
    pub route: String,
}

/// The commands about destinations.
#[derive(Clone, Debug, Subcommand)]
pub enum DestinationsCommand {
    /// List the destinations: which are configured, what they need of an alert, what keeps a note from being doubled
    #[command(alias = "ls")]
    List(JsonArgs),
    /// Check secrets and addresses of the configured destinations; exit code 1 if one fails
    Check(DestinationsCheckArgs),
    /// Print the requests of a note about an alert, with a made-up analysis; nothing is sent without --send
    Test(DestinationsTestArgs),
}

/// Arguments of `destinations check`.
#[derive(Args, Clone, Debug)]
pub struct DestinationsCheckArgs {
    /// The name, a key of `destinations` [default: all]
    pub name: Option<String>,
}

/// Arguments of `destinations test`.
#[derive(Args, Clone, Debug)]
pub struct DestinationsTestArgs {
    /// The name, a key of `destinations`
    pub name: String,
    /// The alert, as its sender posts it; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub alert: PathBuf,
    /// The source of the alert [default: the one that its body fits]
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// The moment of the note
    #[arg(long, value_name = "MOMENT", default_value = "ended", value_parser = moment)]
    pub moment: Moment,
    /// Send the note, which says that it is a test
    #[arg(long)]
    pub send: bool,
}

fn moment(text: &str) -> Result<Moment, String> {
    let known = Moment::OF_ROUTES.map(Moment::as_str).join(", ");
    let listed = Moment::parse(text).filter(|moment| Moment::OF_ROUTES.contains(moment));
    listed.ok_or_else(|| format!("accepted: {known}"))
}
