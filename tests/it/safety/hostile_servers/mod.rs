//! Tool servers that crash, hang, lie and flood: each call ends, and nothing else is affected.

pub(crate) mod server;
mod calls;
mod lists;
mod investigations;
mod http_server;
mod http_calls;
mod http_investigations;
