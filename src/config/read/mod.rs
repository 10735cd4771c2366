//! From YAML text to checked values: every fault at once, each with its line.

pub mod yaml;
pub(crate) mod template;
pub(crate) mod units;
pub(crate) mod fault;
pub(crate) mod reader;
