//! What people publish: what is accepted, and the messages. For the commands and for `tarsy web`.

pub mod submissions;
pub mod reruns;
pub mod questions;
