//! The command line: parses arguments, runs commands, renders their output and returns an exit code.
//!
//! `args` parses; `commands` runs; `watch` follows a timeline, which `render` turns into lines and `terminal` prints.

pub mod args;
pub mod session_ref;
pub mod view;
pub mod commands;
pub mod watch;
pub mod render;
pub mod messages;
pub mod terminal;
pub mod exit;
