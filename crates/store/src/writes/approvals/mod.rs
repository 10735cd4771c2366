//! Writes about approvals: the parking of a session, votes of people, freezes; and the columns of a checkpoint.

pub(crate) mod checkpoint;
pub mod columns;
pub mod freeze;
pub mod park;
pub(crate) mod shift;
pub mod vote;
