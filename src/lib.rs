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

pub mod cli;
pub mod roles;
