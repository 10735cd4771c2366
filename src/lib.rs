//! tarsy investigates alerts and survives the death of any of its parts.
//!
//! Four rings, imports point inward only: `cli` and `roles` (composition) → adapters (`store`, `bus`, `llm`, `mcp`,
//! `receiver`, `runbooks`, `telemetry`) → `engine` → `investigation`. `config` and `drill` hold plain values. See
//! `ARCHITECTURE.md`.

pub mod bus;
pub mod cli;
pub mod config;
pub mod drill;
pub mod engine;
pub mod investigation;
pub mod listener;
pub mod llm;
pub mod mcp;
pub mod receiver;
pub mod roles;
pub mod runbooks;
pub mod store;
pub mod telemetry;
