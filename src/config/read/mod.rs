//! Reads YAML into typed values and reports all faults at once, each with its line.
//!
//! `yaml` parses text into a tree with lines. `reader` reads values from the tree with `units` (durations, sizes,
//! tokens) and `template` (`${VAR}`), and collects each `fault`.

pub mod yaml;
pub(crate) mod reader;
pub(crate) mod units;
pub(crate) mod template;
pub(crate) mod fault;
