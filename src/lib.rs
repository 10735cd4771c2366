//! tarsy investigates alerts and survives the death of any of its parts.
//!
//! Four rings, imports point inward only: this package (composition) → adapters (`store`, `bus`, `llm`, `mcp`,
//! `receiver`, `runbooks`, `skills`, `notifications`, `telemetry`, `web`) → `engine` → `core`. `config`, `drill`
//! and `reports` hold plain values. Within the package `cli` calls `roles` and `admin`, a role may call `admin`, and
//! `process` has the parts of all. See `ARCHITECTURE.md`.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod cli;
pub mod roles;
pub mod admin;
pub mod process;
