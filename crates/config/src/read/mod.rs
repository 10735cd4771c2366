//! Reads YAML into typed values and reports all faults at once, each with its line.
//!
//! `yaml` parses text into a tree with lines. `reader` reads values from the tree in a `context`, with `units`
//! (durations, sizes, tokens) and `template` (`${VAR}`), and collects each `fault`. `written` gives a value as it is in
//! the file, `names` what a file defines, for references.

pub mod yaml;
pub mod context;
pub mod reader;
mod map;
mod written;
pub(crate) mod names;
pub mod units;
pub mod moment;
pub(crate) mod template;
pub mod fault;
