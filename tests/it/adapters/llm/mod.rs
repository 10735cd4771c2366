//! The scripted LLM service over gRPC: a real server on a real port, asked by the real client.

mod answers;
mod endless;
mod failures;
mod fields;
mod gates;
mod harness;
mod native;
mod peers;
