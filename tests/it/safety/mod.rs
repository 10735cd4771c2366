//! Secrets and hostile input: masking and its speed, answers of providers, and texts that are made to be slow to parse.

mod secrets;
mod provider_bytes;
mod masking_speed;
mod hostile;
