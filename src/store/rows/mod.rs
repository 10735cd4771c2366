//! Conversions between the types of the core and the columns of the tables.

pub(crate) mod nul;
pub(crate) mod number;
pub mod words;
pub(crate) mod entry;
pub(crate) mod columns;
pub(crate) mod stored;
