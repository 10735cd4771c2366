//! The LLM protocol: the client that workers use, and the service with its backends.
//!
//! Both sides share only [`proto`]; a worker and a service of different versions understand each other because of
//! the rules in `proto/llm/v1/llm_service.proto`.

pub mod client;
pub mod json;
pub mod proto;
pub mod service;
