//! The store on a real Postgres.

mod cooldown;
pub(crate) mod fixture;
mod follow_ups;
mod in_place;
mod intake;
mod leases;
mod lost_replies;
mod migrations;
mod outage;
mod plans;
mod previous;
mod prune;
mod resolve;
pub(crate) mod rights;
mod rivals;
mod schema;
mod sweeps;
mod values;
mod writes;
