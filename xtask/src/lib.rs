//! The programs of `./dev` that parse, compare or calculate. The shell in `dev.d/` starts processes.
//!
//! Each module is one program: from texts to the lines that it prints. Nothing here depends on a crate of tarsy, so
//! that a change of tarsy builds none of it.

pub mod drills;
pub mod commits;
pub mod times;
