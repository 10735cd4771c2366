//! The list of sessions in the browser, by clicking: folded rows, filters, questions.

mod filters;
mod groups;
mod limited;
mod questions;
