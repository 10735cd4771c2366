//! The parts of every process, be it a role or a command: addresses with their credentials (`credentials`, `connect`,
//! `redact`), the mask (`secrets`, `masked`), MCP servers (`tools`, `users`), `skills`, the configuration for people
//! (`shown`), the keys of their channels (`people`), start and end (`guard`, `shutdown`).

pub mod credentials;
pub mod connect;
mod redact;
pub mod secrets;
pub mod masked;
pub mod tools;
pub mod skills;
mod users;
pub mod shown;
pub mod people;
pub mod guard;
pub mod shutdown;
