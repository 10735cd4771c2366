//! Renders timelines, tables and reports as text. Pure: knows no terminal, no stream and no clock.
//!
//! `timeline` turns events into lines as they arrive; `tables` and `report` show what the store returned. All of them
//! share `style`, `text` (cleaning and cutting), `format` (times and sizes) and `json`.

pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod format;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod results;
pub mod timeline;
pub mod tables;
pub mod report;
#[cfg(test)]
pub(crate) mod tests;
