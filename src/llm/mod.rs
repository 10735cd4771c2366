//! The LLM protocol: the client that workers use, and the service with its backends.
//!
//! Both sides share only [`proto`]. The rules in `proto/llm/v1/llm_service.proto` keep different versions of workers
//! and services compatible.

pub mod client;
pub mod proto;
pub mod service;
pub mod json;
