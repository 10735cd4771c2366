//! Between the types of the core and the columns of the tables.

pub(crate) mod columns;
pub(crate) mod entry;
pub(crate) mod number;
pub(crate) mod clean;
