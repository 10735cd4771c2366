//! The parts that the backends of real providers share.
//!
//! A backend resolves address and key with [`access`], sends each request with the client of [`http`], and leaves
//! repeated attempts to [`retry`]. Each failure is a [`ProviderError`]. Nothing here knows the format of a provider,
//! except for [`foreign`], which reads those of `provider_data`.

pub(crate) mod conversation;
pub mod known;
pub mod key;
pub mod status;
pub mod access;
pub mod http;
pub mod options;
pub mod names;
pub mod schemas;
pub mod refused_tools;
pub mod timeouts;
pub mod error;
pub mod finish;
pub(crate) mod fields;
mod encoded;
mod echo;
pub mod stream;
pub(crate) mod classify;
pub mod retry;
pub mod foreign;
#[cfg(test)]
pub mod tests;

pub use access::{Access, Endpoint};
pub use error::{ErrorCode, ProviderError};
pub use status::ProviderStatus;
pub(crate) use stream::{events, repair};
