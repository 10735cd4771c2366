//! Text for people: timelines, tables and reports. Pure: no terminal, no stream, no clock.

mod style;
pub(crate) mod text;
pub(crate) mod format;
pub(crate) mod json;
pub mod timeline;
pub mod tables;
pub mod report;
