//! The timeline stream: publishing a session's events in order, and following them.

pub(crate) mod wire;
mod signature;
pub(crate) mod feed;
mod publisher;
mod deltas;
mod stream_health;
mod divergence;
mod event_reader;
mod cursor;
pub(crate) mod follow;
pub(crate) mod follow_all;
