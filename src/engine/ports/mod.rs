//! The ports: what the engine needs of the world. Adapters implement them; composition roots join them.
//!
//! Nothing here names a database, a broker or a protocol. Every method is safe to call again after an error.

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
