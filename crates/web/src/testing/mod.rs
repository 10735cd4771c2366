//! For tests of the web server: data of a session, ports that have it, and a check of what pages are made of.

pub(crate) mod markup;
pub mod data;
pub mod backend;
