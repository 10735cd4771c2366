//! TCP listeners: how many connections one may hold, in all and from one client, the HTTP listener of the
//! roles, and the bearer token of a listener.
//!
//! A connection costs its client nothing until it proves who it is. So unauthenticated connections have a
//! separate share and give way first, the oldest one before the others: honest clients are served whatever the number
//! of silent ones.

mod connections;
pub mod http;
mod token;
mod writes;

pub use connections::{ConnectionLimiter, ConnectionPermit, Exchange, Limits};
pub use token::Token;
