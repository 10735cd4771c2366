//! The decisions of tarsy without the rest of it: they need neither its services nor their many crates.

#[path = "../../src/investigation/mod.rs"]
pub mod investigation;
