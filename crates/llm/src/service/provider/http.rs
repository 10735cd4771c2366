//! The HTTP client of all providers: one pool of connections, TLS by rustls with ring, the proxies of the environment.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the certificate authorities of the system. A redirect is not followed,
//! because the key would follow it to another host.

use std::error::Error;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::error::{ErrorCode, ProviderError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
const USER_AGENT: &str = concat!("tarsy/", env!("CARGO_PKG_VERSION"));

/// The client; it is built at its first use.
///
/// # Errors
/// When it cannot be built, for example because a variable names an invalid proxy.
pub fn client() -> Result<Client, ProviderError> {
    static CLIENT: OnceLock<Result<Client, ProviderError>> = OnceLock::new();
    CLIENT.get_or_init(|| build().map_err(unbuilt)).clone()
}

/// A client that uses no proxy, for a server of the machine itself without TLS.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn direct_client() -> Result<Client, ProviderError> {
    static CLIENT: OnceLock<Result<Client, ProviderError>> = OnceLock::new();
    CLIENT
        .get_or_init(|| {
            install_ring();
            let builder = builder().no_proxy().tls_certs_only([]);
            builder.build().map_err(unbuilt)
        })
        .clone()
}

/// A client whose requests all go to a socket of this machine.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn socket_client(path: PathBuf) -> Result<Client, ProviderError> {
    install_ring();
    Client::builder()
        .no_gzip()
        .no_proxy()
        .tls_certs_only([])
        .redirect(Policy::none())
        .unix_socket(path)
        .build()
        .map_err(unbuilt)
}

fn unbuilt(error: reqwest::Error) -> ProviderError {
    ProviderError::internal(format!("http client: {}", describe(error)))
}

/// Another part of the process may have installed a provider of cryptography; there is only one, ring.
fn install_ring() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}

fn build() -> Result<Client, reqwest::Error> {
    install_ring();
    // A machine without certificate authorities may still have a provider in its own network, without TLS.
    builder().build().or_else(|error| {
        tracing::warn!(
            reason = describe(error),
            "certificate authorities not loaded: only providers without TLS can be reached"
        );
        builder().tls_certs_only([]).build()
    })
}

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::none())
        // A compressed stream could be held back until a block is full.
        .no_gzip()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
}

/// A request that could not be sent, or an answer that could not be read. The URL is not part of the message.
pub fn unavailable(error: reqwest::Error) -> ProviderError {
    ProviderError::transient(
        ErrorCode::Unavailable,
        format!("connection failed: {}", describe(error)),
    )
}

/// An error and its innermost cause, without the URL, which may have a key.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let sources = std::iter::successors(error.source(), |error| (*error).source());
    match sources.last() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_message_of_a_failed_request_has_no_url() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/path?key=secret", listener.local_addr().unwrap());
        drop(listener);
        let error = unavailable(client().unwrap().get(url).send().await.unwrap_err());
        assert!(
            error.retryable && error.code == ErrorCode::Unavailable,
            "{error:?}"
        );
        let message = error.message;
        assert!(
            message.starts_with("connection failed: ") && message.contains("refused"),
            "{message}"
        );
        assert!(
            !message.contains("secret") && !message.contains("127.0.0.1"),
            "{message}"
        );
    }
}
