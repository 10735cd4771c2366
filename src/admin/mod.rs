//! The work of operators: each command that is more than a query, without its arguments and its output, which `cli`
//! has.
//!
//! `tarsy web` shows some of it: the checks of `doctor`, and what people publish. A worker asks `models` whether its
//! providers can be called.

pub mod publishing;
pub mod migrate;
pub mod models;
pub mod doctor;
pub mod init;
pub mod drill;
