//! Composition roots: one file a role of the binary. The only place, with `cli`, that names two adapters.

pub mod connect;
pub mod doctor;
pub mod drill;
pub mod gauges;
pub mod guard;
pub mod intake;
pub mod llm_service;
pub mod masked;
pub mod migrate;
pub mod receive;
pub mod secrets;
mod shown;
pub mod shutdown;
pub mod tools;
pub mod worker;
