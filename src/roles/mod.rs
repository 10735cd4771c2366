//! The roles of the binary and the parts that they are composed of. Only this module and `cli` name two adapters.
//!
//! `worker`, `llm_service`, `receive` and `web` run until a signal stops them; `migrate`, `models`, `doctor`, `init`
//! and `drill` serve commands. `publishing` is for commands and for `web`.
//! All of them use `credentials`, `connect` and `redact` (addresses), `secrets` and `masked` (the mask), `tools` (MCP
//! servers), `guard` and `shutdown` (the process).

pub mod worker;
pub mod llm_service;
pub mod receive;
pub mod web;
pub mod publishing;
pub mod migrate;
pub mod models;
pub mod doctor;
pub mod init;
pub mod drill;
pub mod credentials;
pub mod connect;
mod redact;
pub mod secrets;
pub mod masked;
pub mod tools;
mod users;
pub mod guard;
pub mod shutdown;
