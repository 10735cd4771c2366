//! Arguments of `notify`.

use clap::{Args, Subcommand};

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
