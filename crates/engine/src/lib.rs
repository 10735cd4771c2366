//! The engine: drives the core over ports. It owns the loop, time and tasks; it knows no database and no broker.
//!
//! An alert passes through `delivery`, gets a plan from `plan`, and becomes a session that `run` brings to its end.
//! `worker` has the background tasks, `trace` the spans of an investigation. `ports` has a trait for each external
//! system.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod ports;
pub mod world;
pub mod trace;
pub mod backoff;
pub mod delivery;
pub mod plan;
pub mod run;
pub mod worker;
#[cfg(test)]
mod testing;
