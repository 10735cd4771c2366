//! `tarsy web` as a process, on a real broker and a real database.

mod api;
mod approvals;
mod browser;
mod client;
mod described;
mod forms;
mod list;
mod load;
mod names;
mod outages;
mod read_only;
mod rights;
mod routes;
mod search;
mod streams;
mod submissions;
mod system;

pub(crate) use self::client::{Sse, Web};
