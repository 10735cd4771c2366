//! Tests of the backend against a local endpoint over real sockets.

mod conversation;
mod requests;
mod odd_streams;
mod streams;
mod signatures;
mod failures;
mod refused_tools;
mod bedrock;
mod vertex_ai;
mod declared_tools;
mod secrets;
