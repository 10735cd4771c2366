//! The timeline stream: publishing a session's events in order, and following them.

pub(crate) mod wire;
mod seal;
pub(crate) mod feed;
mod publisher;
mod deltas;
mod refusals;
mod divergence;
pub(crate) mod stream_get;
pub(crate) mod reader;
mod tail;
mod cursor;
pub(crate) mod follow;
pub(crate) mod follow_all;
