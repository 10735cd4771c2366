//! Permissions of NATS clients: the roles of tarsy, the subjects that each role needs, and a check of given
//! credentials.
//!
//! `deploy/nats` has the same lists for a server; a test compares both.

mod subjects;
mod ability;
mod role;
mod granted;

pub use ability::Ability;
pub use granted::Granted;
pub use role::{Fit, NatsRole};
