//! Secrets and hostile input: masking, its speed, and texts that are made to be slow to parse.

mod secrets;
mod masking_speed;
mod hostile;
