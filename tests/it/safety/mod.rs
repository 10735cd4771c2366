//! Hostile input and secrets: masking, its speed, and text made to be slow to read.

mod secrets;
mod masking_speed;
mod hostile;
