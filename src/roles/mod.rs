//! Composition roots: one file a role of the binary. The only place, with `cli`, that names two adapters.

pub mod connect;
pub mod doctor;
pub mod drill;
pub mod guard;
pub mod llm_service;
pub mod masked;
pub mod migrate;
pub mod receive;
mod redact;
pub mod secrets;
pub mod shutdown;
pub mod tools;
pub mod worker;
