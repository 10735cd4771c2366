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
#[path = "../admin/publishing/mod.rs"]
pub mod publishing;
#[path = "../admin/migrate.rs"]
pub mod migrate;
#[path = "../admin/models/mod.rs"]
pub mod models;
#[path = "../admin/doctor/mod.rs"]
pub mod doctor;
#[path = "../admin/init/mod.rs"]
pub mod init;
#[path = "../admin/drill.rs"]
pub mod drill;
#[path = "../process/credentials.rs"]
pub mod credentials;
#[path = "../process/connect.rs"]
pub mod connect;
#[path = "../process/redact.rs"]
mod redact;
#[path = "../process/secrets/mod.rs"]
pub mod secrets;
#[path = "../process/masked.rs"]
pub mod masked;
#[path = "../process/tools.rs"]
pub mod tools;
#[path = "../process/users.rs"]
mod users;
#[path = "../process/guard.rs"]
pub mod guard;
#[path = "../process/shutdown.rs"]
pub mod shutdown;
