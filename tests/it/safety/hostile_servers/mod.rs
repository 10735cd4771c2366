//! Tool servers that crash, hang, lie and flood: each call ends, and nothing else is affected.

mod server;
mod calls;
mod lists;
mod investigations;
