//! Publishes alerts, questions and reruns of people, for the commands and for `tarsy web`: checks the input and
//! builds the messages.

pub mod submissions;
pub mod reruns;
pub mod decisions;
pub mod questions;
