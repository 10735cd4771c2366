//! Builds the HTTP client of one server: certificate authorities, proxy, redirects, timeouts.

use std::path::Path;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, Client, ClientBuilder, Proxy, StatusCode};

use super::HttpFault;
use crate::client::config::HttpConfig;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_REDIRECTS: usize = 5;
const USER_AGENT: &str = concat!("tarsy/", env!("CARGO_PKG_VERSION"));

/// The client. It trusts the authorities of the system (or of `SSL_CERT_FILE`) and those of `ca_file`, and uses `proxy`
/// or else the proxies of the environment.
pub(super) fn build(config: &HttpConfig) -> Result<Client, HttpFault> {
    // Another part of the process may have installed a provider of cryptography; there is only one, ring.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let authorities = config
        .ca_file
        .as_deref()
        .map(authorities)
        .transpose()?
        .unwrap_or_default();
    let proxy = config.proxy.as_deref().map(Proxy::all).transpose();
    let proxy =
        proxy.map_err(|_error| HttpFault::Setup("proxy: the address cannot be used".to_owned()))?;
    let builder = || match &proxy {
        Some(proxy) => builder().proxy(proxy.clone()),
        None => builder(),
    };
    let built = builder().tls_certs_merge(authorities.clone()).build();
    let built = built.or_else(|error| {
        let reason = error.without_url().to_string();
        tracing::warn!(
            reason,
            "certificate authorities of the system not loaded: only those of ca_file are trusted"
        );
        builder().tls_certs_only(authorities).build()
    });
    built.map_err(|error| HttpFault::Setup(error.without_url().to_string()))
}

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::custom(|attempt| {
            if may_follow(&attempt) {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
}

/// Many servers send `/mcp` to `/mcp/`. Another origin is not followed, because the token and the headers would follow,
/// and neither is a status that turns the POST into a GET.
fn may_follow(attempt: &Attempt<'_>) -> bool {
    let keeps_body = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let first = attempt.previous().first();
    keeps_body
        && attempt.previous().len() <= MAX_REDIRECTS
        && first.is_some_and(|first| first.origin() == attempt.url().origin())
}

fn authorities(file: &Path) -> Result<Vec<Certificate>, HttpFault> {
    let fault = |reason: String| HttpFault::Setup(format!("ca_file: {}: {reason}", file.display()));
    let pem = std::fs::read(file).map_err(|error| fault(error.to_string()))?;
    let authorities = Certificate::from_pem_bundle(&pem)
        .map_err(|_error| fault("no certificate in PEM".to_owned()))?;
    if authorities.is_empty() {
        Err(fault("no certificate in PEM".to_owned()))
    } else {
        Ok(authorities)
    }
}
