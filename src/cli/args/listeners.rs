//! Arguments of the roles that serve HTTP.

use std::net::SocketAddr;

use clap::Args;

use super::ParentArgs;

/// Arguments of `receive`.
///
/// The token has no argument, because every user of the machine can read a command line. See `TARSY_RECEIVE_TOKEN`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = RECEIVE_TOKEN, after_help = RECEIVE_TOKEN)]
pub struct ReceiveArgs {
    /// Address to listen on; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDRESS", env = "TARSY_RECEIVE_LISTEN", default_value = "127.0.0.1:8475")]
    pub listen: SocketAddr,
    /// Address of metrics and health; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDRESS", env = "TARSY_METRICS_LISTEN", default_value = "127.0.0.1:0")]
    pub metrics_listen: SocketAddr,
    #[command(flatten)]
    pub parent: ParentArgs,
}

const RECEIVE_TOKEN: &str = "\
The bearer token that clients have to send comes from the environment: TARSY_RECEIVE_TOKEN, or the file that
TARSY_RECEIVE_TOKEN_FILE names. Without one, only a loopback address is accepted.";

/// Arguments of `web`.
///
/// The token has no argument, because every user of the machine can read a command line. See `TARSY_WEB_TOKEN`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = WEB_TOKEN, after_help = WEB_TOKEN)]
pub struct WebArgs {
    /// Address to listen on; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDRESS", env = "TARSY_WEB_LISTEN", default_value = "127.0.0.1:8476")]
    pub listen: SocketAddr,
    /// Address of metrics and health; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDRESS", env = "TARSY_METRICS_LISTEN", default_value = "127.0.0.1:0")]
    pub metrics_listen: SocketAddr,
    #[command(flatten)]
    pub parent: ParentArgs,
}

const WEB_TOKEN: &str = "\
The section web of tarsy.yaml says how users are known and what they may do. The token comes from the environment:
TARSY_WEB_TOKEN, or the file that TARSY_WEB_TOKEN_FILE names; with web.auth: proxy, the proxy's secret comes from
TARSY_WEB_PROXY_SECRET or TARSY_WEB_PROXY_SECRET_FILE. Without either, only a loopback address is accepted.";
