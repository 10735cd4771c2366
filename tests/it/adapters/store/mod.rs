//! The store, on a real Postgres.

mod approvals;
mod attempts;
mod cooldown;
pub(crate) mod database;
pub(crate) mod fixture;
mod follow_ups;
mod intake;
mod leases;
mod outbox;
mod lost_replies;
mod outage;
mod past;
mod races;
mod resolve;
mod results;
mod search;
mod sweeps;
mod values;
mod verdicts;
pub(crate) mod writes;
