//! TCP listeners: how many connections one may hold, in all and from one client, the HTTP listener of the
//! roles, and the bearer token of a listener.
//!
//! An idle connection costs its client nothing. So a listener at its limit closes the connection that has been idle for
//! longest, and honest clients are served beside any number of silent ones.

mod connections;
pub mod http;
mod token;
mod writes;

pub use connections::{ConnectionLimiter, ConnectionPermit, InUse, Limits};
pub use token::Token;
