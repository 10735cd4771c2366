//! The statements that change an alert or a session, in the order of their life cycle.

pub mod receive;
pub mod open;
pub mod claim;
pub mod renew;
pub mod checkpoint;
pub mod step;
pub mod finish;
pub(crate) mod settle;
pub mod approvals;
pub mod cancel;
pub mod sweep;
pub(crate) mod recover;
pub mod notify;
pub mod prune;
pub mod words;
pub mod skill_texts;
