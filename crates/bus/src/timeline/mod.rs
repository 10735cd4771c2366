//! The timeline stream: publishing a session's events in order, and following them.

pub mod wire;
mod signature;
pub mod feed;
mod publisher;
mod deltas;
mod stream_health;
mod divergence;
mod event_reader;
mod cursor;
pub mod follow;
pub mod follow_all;
