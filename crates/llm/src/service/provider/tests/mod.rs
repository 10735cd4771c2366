//! What the tests of all backends share: an endpoint of their own over real sockets, and conversations with it.

pub mod endpoint;
pub(crate) mod conversation;
pub mod log;
