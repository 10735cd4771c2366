//! People in a chaos run: investigations whose calls wait for them, and voters at every channel who decide, deny, err,
//! forge and repeat.

mod records;
mod recordings;
mod report;
mod voters;

pub(super) use recordings::{configuration, evidence, mark, recordings, server, write_keys};
pub(super) use records::{People, Request, Vote, read, unrecorded};
pub(super) use report::page;
pub(super) use voters::{Cast, Intent, decide};

/// The tools whose calls wait: for one person, for two, and for a person who never answers.
pub(super) const DRAIN: &str = "drain";
pub(super) const REBOOT: &str = "reboot";
pub(super) const WIPE: &str = "wipe";
/// All of them.
pub(super) const GUARDED: [&str; 3] = [DRAIN, REBOOT, WIPE];
/// The policy of each.
pub(super) const ONE: &str = "one";
pub(super) const TWO: &str = "two";
pub(super) const SHORT: &str = "short";
