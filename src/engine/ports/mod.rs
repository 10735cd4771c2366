//! The ports: traits for everything that the engine needs of the world, in the order in which an alert meets them.
//! Adapters implement the ports, and composition roots join them.
//!
//! No port names a database or a protocol. Every method is safe to call again after an error.

mod intake;
mod sessions;
mod journal;
mod model;
mod tools;
mod broker;
mod standing;
mod threads;
mod pruned;

pub use broker::*;
pub use intake::*;
pub use journal::*;
pub use model::*;
pub use pruned::*;
pub use sessions::*;
pub use standing::*;
pub use threads::*;
pub use tools::*;
