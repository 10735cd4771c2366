//! How the client reaches a server: the child process with its lines, and HTTP.

pub(super) mod child;
mod process;
mod lines;
pub(super) mod http;
