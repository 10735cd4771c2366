//! The words that crates share, each list in one place: providers, codes of failed model calls, and `words!` for enums.
//!
//! Configuration, service, engine, metrics and documents take them from here. Words on the wire and in the store never
//! change.

pub mod error_code;
pub mod provider;
mod words;

pub use self::error_code::ErrorCode;
pub use self::provider::{Protocol, Provider};
pub use self::words::joined;

/// The label of a word from outside that is not in its list.
pub const OTHER: &str = "other";
