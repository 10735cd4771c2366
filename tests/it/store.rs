//! The store on a real Postgres.

pub(crate) mod fixture;
mod intake;
mod leases;
mod outage;
mod rivals;
mod schema;
mod values;
mod writes;
