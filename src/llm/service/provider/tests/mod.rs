//! What the tests of all backends share: an endpoint of their own over real sockets, and conversations with it.

pub(crate) mod endpoint;
pub(crate) mod conversation;
pub(crate) mod log;
