//! The transports to a server: a child process with lines on stdio, and HTTP.

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
