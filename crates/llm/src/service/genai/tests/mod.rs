//! The backend against an endpoint of its own over real sockets.

mod conversation;
mod requests;
mod odd_streams;
mod streams;
mod signatures;
mod failures;
mod refused_tools;
mod bedrock;
mod secrets;
