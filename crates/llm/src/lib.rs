//! The LLM protocol: the client that workers use, and the service with its backends.
//!
//! Both sides share only [`proto`] with its [`codec`], and the files of TLS and tokens ([`pem`], [`token`]). The rules
//! in `proto/llm/v1/llm_service.proto` keep different versions of workers and services compatible.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod client;
pub mod proto;
pub mod codec;
pub mod token;
pub mod pem;
pub mod service;
pub mod json;
