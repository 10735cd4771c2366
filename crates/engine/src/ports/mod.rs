//! The ports: traits for all external systems of the engine, in the order in which an alert uses them. Adapters
//! implement the ports, and composition roots join them.
//!
//! No port names a database or a protocol. Every method is safe to call again after an error.

mod dead_letter;
mod intake;
mod lease;
mod sessions;
mod journal;
mod people;
mod model;
mod tools;
mod sweep;
mod broker;
mod settlement;
mod tail;
mod pruned;
mod notifications;

pub use broker::*;
pub use dead_letter::*;
pub use intake::*;
pub use journal::*;
pub use lease::*;
pub use model::*;
pub use notifications::*;
pub use people::*;
pub use pruned::*;
pub use sessions::*;
pub use settlement::*;
pub use sweep::*;
pub use tail::*;
pub use tools::*;
