//! The sections of a configuration file: each key with its meaning, default and accepted values.
//!
//! Agents are put together from `providers`, `native_tools`, `past`, `servers`, `skills`, `settings` and `agents`
//! with their `sub_agents`; `chains`, `synthesis` and `review` say which of them run, `routes` for which alerts.
//! `worker`, `streams`, `retention`, `trust`, `web`, `notifications`, `destinations`, `sources` and `llm_service`
//! configure the system around them.

pub(crate) mod native_tools;
pub(crate) mod past;
pub(crate) mod providers;
pub(crate) mod servers;
pub(crate) mod settings;
pub(crate) mod skills;
pub(crate) mod agents;
pub(crate) mod sub_agents;
pub(crate) mod chains;
pub(crate) mod review;
pub(crate) mod routes;
pub(crate) mod synthesis;
pub(crate) mod approvals;
pub(crate) mod trust;
pub(crate) mod llm_service;
pub(crate) mod worker;
pub(crate) mod streams;
pub(crate) mod retention;
pub(crate) mod web;
pub(crate) mod notifications;
pub mod destinations;
pub(crate) mod sources;
