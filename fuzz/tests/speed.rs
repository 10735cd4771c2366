//! What the readers take with optimisation, without the long build of the whole: tests of its suite.

#[path = "../../tests/it/safety/hostile.rs"]
mod hostile;
#[path = "../../tests/it/safety/hostile_bodies.rs"]
mod hostile_bodies;
#[path = "../../tests/it/safety/masking_speed.rs"]
mod masking_speed;
#[path = "../../tests/it/safety/processor_time.rs"]
mod processor_time;
