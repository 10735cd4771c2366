//! The command line: arguments, what the terminal shows, exit codes.

pub mod args;
pub mod commands;
pub mod exit;
pub mod messages;
pub mod render;
pub mod session_ref;
pub mod terminal;
pub mod view;
pub mod watch;
