//! What the terminal shows.

mod binary;
mod timeline;
mod watch;
