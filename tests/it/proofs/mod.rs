//! Proofs over many orders and faults: the model of the protocol, random fault injection, load, old journals.

mod protocol;
pub(crate) mod proof;
pub(crate) mod chaos;
mod load;
mod journals;
