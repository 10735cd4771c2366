//! The one integration binary: real nats-server, real Postgres, real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "helpers of tests fail like tests"
)]

mod bus;
mod cancel;
mod chains;
mod chaos;
mod commands;
mod config;
mod controllers;
mod dedupe;
mod delivery;
mod drill;
mod effects;
mod given_up;
mod hostile;
mod journals;
mod llm;
mod load;
mod lost_commits;
mod masking_speed;
mod mcp;
mod metrics;
mod poison;
mod proof;
mod protocol;
mod python;
mod read_only;
mod receive;
mod secrets;
mod settling;
mod start;
mod store;
mod support;
mod survive;
mod terminal;
mod tools;
mod voices;
