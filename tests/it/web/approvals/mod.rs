//! Approvals on pages and in the API: who sees the form, what a decision does, and that no GET decides.

pub(in crate::web) mod fixture;
mod api;
mod forms;
mod freezes;
mod rights;
mod unchanged;
