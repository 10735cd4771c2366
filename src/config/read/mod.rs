//! Reads YAML into typed values and reports all faults at once, each with its line.
//!
//! `yaml` parses text into a tree with lines. `reader` reads values from the tree in a `context`, with `units`
//! (durations, sizes, tokens) and `template` (`${VAR}`), and collects each `fault`. `written` gives a value as it is in
//! the file.

pub mod yaml;
pub(crate) mod context;
pub(crate) mod reader;
mod written;
pub(crate) mod units;
pub(crate) mod moment;
pub(crate) mod template;
pub(crate) mod fault;
