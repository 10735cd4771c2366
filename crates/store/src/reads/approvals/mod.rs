//! Reads about approvals: for a run that waits, for the recorder of votes, and for people.

pub mod people;
pub mod waiting;
