//! Servers, processes and signals that the tests share.

pub(crate) mod figures;
pub(crate) mod gates;
pub(crate) mod http;
pub(crate) mod monitoring;
pub(crate) mod nats;
pub(crate) mod postgres;
pub(crate) mod postgres_server;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod stage;
pub(crate) mod stream;
pub(crate) mod wait;
