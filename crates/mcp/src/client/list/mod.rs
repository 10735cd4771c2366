//! Reads the list of tools of a server.

pub(super) mod declared;
pub(super) mod pages;
