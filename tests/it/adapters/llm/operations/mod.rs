//! The service as an operator runs it: TLS, tokens, limits, reflection, drain and metrics.

mod limits;
mod process;
mod proxies;
mod reflection;
mod security;

use tarsy_llm::service;

use super::harness::{Server, script};

/// A service with one recorded answer, `fine`.
fn start(options: service::Options) -> Server {
    Server::start_with(
        "127.0.0.1:0".parse().unwrap(),
        script("  - {chunks: [{text: fine}]}\n"),
        options,
    )
}
