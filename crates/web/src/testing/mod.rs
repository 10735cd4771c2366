//! Test support for the web server: data of a session, fake ports that return it, and a checker of the pages' markup.

pub(crate) mod markup;
pub(crate) mod approvals;
pub mod data;
pub mod backend;
