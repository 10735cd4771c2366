//! The finders: each marks secrets of one form in a text, in linear time.

pub(crate) mod doc;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod words;
mod commands;
mod phrases;
pub(crate) mod prose;
pub(crate) mod tables;
pub(crate) mod urls;
pub(crate) mod keys;
pub(crate) mod shapes;
pub(crate) mod encoded;
