//! Secrets and hostile input: masking and its speed, keys and answers of providers, and
//! texts that are made to be slow to parse.

pub(crate) mod traces;
pub(crate) mod seed_search;
mod secrets;
mod provider_keys;
mod provider_bytes;
mod processor_time;
mod masking_speed;
mod crowds;
mod hostile;
mod hostile_bodies;
mod hostile_text;
pub(crate) mod hostile_servers;
pub(crate) mod permissions;
