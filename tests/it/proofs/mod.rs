//! Tests over many orders and faults: a model of the protocol, random faults, load, journals of earlier versions.

mod protocol;
pub(crate) mod checkpoints;
pub(crate) mod chaos;
mod cost;
pub(crate) mod load;
mod deaths;
mod sizing;
mod fleet;
mod journals;
mod vote_to_call;
mod waiting_at_scale;
