//! The web server: pages for people and a JSON API for programs, over the same ports. It writes nothing
//! to the database; what people request goes to the workers as messages.
//!
//! A request passes, from outside in: `headers` (the security headers of every response), `access` (`Host`, who the
//! user is, where a form comes from), then a handler of `pages/` or `api/`. Handlers reach the database and the broker
//! through `ports`, and followed timelines through `hub`.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod ports;
mod server;
mod router;
mod state;
mod headers;
mod metrics;
pub mod access;
mod rights;
mod fault;
mod submissions;
mod decisions;
mod frames;
mod hub;
mod stream;
mod json;
mod shell;
mod cache;
mod assets;
mod rendering;
mod markdown;
mod pages;
mod api;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "the tests of this crate use the rest")
)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test fails by panicking"
)]
pub mod testing;

pub use self::api::OPENAPI;
pub use self::server::{Settings, serve};
