//! Tests of the speed of the optimised readers, taken from the suite, which would need a long build.

#[path = "../../tests/it/safety/hostile.rs"]
mod hostile;
#[path = "../../tests/it/safety/hostile_bodies.rs"]
mod hostile_bodies;
#[path = "../../tests/it/safety/masking_speed.rs"]
mod masking_speed;
#[path = "../../tests/it/safety/processor_time.rs"]
mod processor_time;
