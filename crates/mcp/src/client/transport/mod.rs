//! How the client reaches a server: the child process with its lines, and HTTP.

pub(super) mod child;
mod open;
mod repair;
mod skipped;
mod message;
mod process;
mod initialize;
mod lines;
pub(super) mod http;

pub(in crate::client) use self::message::UNREADABLE;
