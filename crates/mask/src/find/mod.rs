//! The finders: each finds the secrets of one format in a text, in linear time, and adds their spans.

pub(crate) mod document;
pub(crate) mod json;
pub(crate) mod yaml;
mod word;
mod commands;
mod named_values;
mod phrases;
mod statements;
pub(crate) mod key_values;
pub(crate) mod tables;
pub(crate) mod urls;
pub(crate) mod private_keys;
pub(crate) mod tokens;
pub(crate) mod encoded;
