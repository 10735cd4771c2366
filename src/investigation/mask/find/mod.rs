//! The finders: each marks secrets of one form in a text, in linear time.

pub(crate) mod document;
pub(crate) mod json;
pub(crate) mod yaml;
pub(crate) mod key_values;
mod commands;
mod named_values;
pub(crate) mod prose;
pub(crate) mod tables;
pub(crate) mod urls;
pub(crate) mod private_keys;
pub(crate) mod token_formats;
pub(crate) mod encoded;
