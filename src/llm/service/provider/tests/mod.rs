//! Support for the tests of all backends: an endpoint over real sockets, and conversations with it.

pub(crate) mod endpoint;
pub(crate) mod conversation;
pub(crate) mod log;
