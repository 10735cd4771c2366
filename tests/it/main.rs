//! The one integration binary: real nats-server, real Postgres, real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    clippy::too_many_lines,
    reason = "helpers of tests fail like tests"
)]

mod adapters;
mod chart;
mod image;
mod interfaces;
mod lifecycle;
mod faults;
mod proofs;
mod safety;
mod tool_servers;
mod web;

mod support;
