//! Servers, processes and signals that the tests share.

pub(crate) mod certificates;
pub(crate) mod figures;
pub(crate) mod gates;
pub(crate) mod http;
pub(crate) mod link;
pub(crate) mod monitoring;
pub(crate) mod nats;
pub(crate) mod postgres;
pub(crate) mod postgres_server;
pub(crate) mod process;
#[expect(dead_code, reason = "the layouts are for the tests of the mask")]
pub(crate) mod seeds;
pub(crate) mod tool_server;
pub(crate) mod system;
pub(crate) mod smtp;
pub(crate) mod stream;
pub(crate) mod grpc_recorder;
pub(crate) mod wait;
