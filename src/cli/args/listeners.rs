//! Arguments of the roles that serve HTTP.

use std::net::SocketAddr;

use clap::Args;

use super::ParentArgs;

/// Arguments of `receive`.
///
/// The token has no argument, because every user of the machine can read a command line. See `TARSY_RECEIVE_TOKEN`.
#[derive(Args, Clone, Debug)]
pub struct ReceiveArgs {
    /// Address to listen on; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TARSY_RECEIVE_LISTEN",
        default_value = "127.0.0.1:8475"
    )]
    pub listen: SocketAddr,
    /// Address of metrics and health; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TARSY_METRICS_LISTEN",
        default_value = "127.0.0.1:0"
    )]
    pub metrics_listen: SocketAddr,
    /// Receive clicks of people in Slack instead of alerts; needs receive.slack
    #[arg(long)]
    pub slack_only: bool,
    #[command(flatten)]
    pub parent: ParentArgs,
}

/// Arguments of `web`.
///
/// The token has no argument, because every user of the machine can read a command line. See `TARSY_WEB_TOKEN`.
#[derive(Args, Clone, Debug)]
pub struct WebArgs {
    /// Address to listen on; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TARSY_WEB_LISTEN",
        default_value = "127.0.0.1:8476"
    )]
    pub listen: SocketAddr,
    /// Address of metrics and health; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TARSY_METRICS_LISTEN",
        default_value = "127.0.0.1:0"
    )]
    pub metrics_listen: SocketAddr,
    #[command(flatten)]
    pub parent: ParentArgs,
}
