//! Formats values for people, on a terminal or a page: cleaned text, times and sizes, results of tools.

pub mod line_time;
pub mod text;
pub(crate) mod bounded;
pub mod cut;
pub mod presentation;
pub mod format;
pub mod results;
