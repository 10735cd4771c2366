//! What the clients of a broker may do: the roles of tarsy, what each needs, and what given credentials permit.
//!
//! `deploy/nats` has the same lists for a server; a test compares both.

mod subjects;
mod ability;
mod role;
mod granted;

pub use ability::Ability;
pub use granted::Granted;
pub use role::{Fit, NatsRole};
