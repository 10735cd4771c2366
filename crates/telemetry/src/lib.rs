//! Observability of a role: metrics, probes, logs and traces.
//!
//! The other rings only call the macros of `metrics` and `tracing`; this one records, exports and writes. It knows
//! nothing of sessions, databases or brokers.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod names;
pub mod metrics;
mod process;
pub mod http;
pub mod serving;
pub mod process_mask;
pub mod logs;
pub mod traces;
