//! How values read for people, in a terminal and on a page: text without what it must not do there, times and sizes,
//! results of tools.

pub mod text;
pub mod format;
pub mod results;
