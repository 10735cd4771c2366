//! The interfaces of the program: configuration, commands, HTTP receiver, drills and a client in another language.

mod compose;
mod config;
mod init;
pub(crate) mod commands;
mod tools;
pub(crate) mod receive;
mod python;
mod drill;
mod real_drill;
