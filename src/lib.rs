//! tarsy investigates alerts and survives the death of any of its parts.
//!
//! Four rings, imports point inward only: `cli` and `roles` (composition) → adapters (`store`, `bus`, `llm`, `mcp`,
//! `receiver`, `runbooks`, `notifications`, `telemetry`, `web`) → `engine` → `investigation`. `config`, `drill` and
//! `reports` hold plain values. See `ARCHITECTURE.md`.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod bus;
pub mod cli;
pub mod listener;
pub mod llm;
pub mod mcp;
pub mod notifications;
pub mod outgoing;
pub mod receiver;
pub mod roles;
pub mod runbooks;
pub mod store;
pub mod telemetry;
pub mod web;
