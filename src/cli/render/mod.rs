//! Renders timelines, tables and reports as text. Pure: knows no terminal, no stream and no clock.
//!
//! `timeline` turns events into lines as they arrive; `tables` and `report` show what the store returned. All of them
//! share `style`, `text` (cutting and wrapping) and `json`. What a row says is `core/timeline/rows`, which the
//! web interface shows as well.

pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod markdown;
pub mod timeline;
pub mod tables;
pub mod report;
pub mod call;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use tarsy_core::readable::{format, results};
pub(crate) use tarsy_reports::json;
