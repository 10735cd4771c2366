//! Conversions between the types of the core and the columns of the tables.

pub(crate) mod nul;
pub mod number;
pub mod words;
pub mod entry;
pub mod columns;
pub mod stored;
