//! The HTTP client for requests to addresses that operators configure: one TLS configuration, and no redirect without
//! a check; the reader of events in a response; TLS connections for gRPC; tokens.
//!
//! A proxy of the environment is used.

pub mod events;
pub mod tls;
pub mod token;

use std::error::Error as _;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const USER_AGENT: &str = concat!("tarsy/", env!("CARGO_PKG_VERSION"));

/// A client that follows no redirect and sends no referrer.
pub fn builder() -> ClientBuilder {
    // Another part of the process may have installed a provider of cryptography; there is only one, ring.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
}

/// The innermost cause of a failed request, without the URL.
pub fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let sources = std::iter::successors(error.source(), |error| (*error).source());
    sources
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
