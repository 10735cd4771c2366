//! The store on a real Postgres.

mod cooldown;
pub(crate) mod fixture;
mod follow_ups;
mod intake;
mod leases;
mod lost_replies;
mod outage;
mod plans;
mod previous;
mod rivals;
mod schema;
mod sweeps;
mod values;
mod writes;
