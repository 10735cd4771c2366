//! The scripted LLM service over gRPC: the real client calls a real server.

mod answers;
mod differential;
mod endless;
mod failures;
mod fields;
mod gates;
mod harness;
mod litellm;
mod long_streams;
mod native;
mod operations;
mod output_limit;
mod peers;
mod settings;
mod unchecked;
