//! The statements that change an alert or a session, in the order of their life cycle.

pub(crate) mod receive;
pub(crate) mod open;
pub(crate) mod claim;
pub(crate) mod renew;
pub(crate) mod checkpoint;
pub(crate) mod step;
pub(crate) mod finish;
pub(crate) mod settle;
pub(crate) mod cancel;
pub(crate) mod sweep;
pub(crate) mod recover;
pub(crate) mod notify;
pub(crate) mod prune;
pub(crate) mod words;
