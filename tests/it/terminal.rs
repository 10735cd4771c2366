//! What the terminal shows.

mod binary;
mod checks;
mod letters;
mod sessions;
mod timeline;
mod watch;
