//! What a role tells about itself: metrics, probes and logs.
//!
//! The other rings only call the macros of `metrics` and `tracing`; this one decides what becomes of it. It knows
//! nothing of sessions, databases or brokers.

pub mod http;
pub mod logs;
pub mod metrics;
pub mod names;
mod process;
pub mod serving;
