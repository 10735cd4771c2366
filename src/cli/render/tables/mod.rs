//! Tables and lists for a terminal.

pub(crate) mod table;
pub mod list;
pub mod show;
pub mod dead_letters;
pub mod checks;
