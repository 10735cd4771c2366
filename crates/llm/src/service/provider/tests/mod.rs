//! Support for the tests of all backends: an endpoint over real sockets, and conversations with it.

pub mod endpoint;
pub(crate) mod conversation;
pub mod log;
