//! The life of alerts and sessions: start of a worker, delivery, cooldown, chains, tools, cancellation and settlement.

pub(crate) mod start;
mod voices;
mod delivery;
mod dedupe;
mod chains;
mod tools;
mod controllers;
mod cancel;
mod settling;
mod metrics;
