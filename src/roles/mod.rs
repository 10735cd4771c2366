//! The roles of the binary: the processes that run until a signal stops them. `admin`, `cli` and this module name two
//! adapters.

pub mod worker;
pub mod llm_service;
pub mod receive;
pub mod web;
