//! The tables of all metrics: name, labels with every value, kind, buckets, help, and the roles that export it.
//!
//! Code that counts uses the literal name; a test compares it with these tables. A label value is never an id, a title
//! or a name that a model chose.

mod metric;
mod common;
mod worker;
mod llm_service;
mod receive;
mod web;

use self::common::{COMMON, NATS};
use self::llm_service::LLM_SERVICE;
pub use self::metric::{AGENTS, Kind, Label, Metric, POLICIES, PROVIDERS, ROUTES, SERVERS};
use self::receive::RECEIVE;
use self::web::WEB;
use self::worker::WORKER;

/// A role that exports metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `tarsy worker`.
    Worker,
    /// `tarsy llm-service`.
    LlmService,
    /// `tarsy receive`.
    Receive,
    /// `tarsy web`.
    Web,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Worker, Self::LlmService, Self::Receive, Self::Web];

    /// The metrics that this role exports.
    pub fn metrics(self) -> impl Iterator<Item = &'static Metric> {
        let own = match self {
            Self::Worker => [WORKER, NATS],
            Self::LlmService => [LLM_SERVICE, &[]],
            Self::Receive => [RECEIVE, NATS],
            Self::Web => [WEB, NATS],
        };
        own.into_iter().flatten().chain(COMMON)
    }
}

/// All metrics, each once.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [COMMON, WORKER, NATS, LLM_SERVICE, RECEIVE, WEB]
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_exported_by_some_role_and_by_no_role_twice() {
        let mut names: Vec<&str> = all().map(|metric| metric.name).collect();
        names.sort_unstable();
        let exported = Role::ALL.into_iter().flat_map(|role| {
            let mut names: Vec<&str> = role.metrics().map(|metric| metric.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{role:?}");
            names
        });
        let mut exported: Vec<&str> = exported.collect();
        exported.sort_unstable();
        exported.dedup();
        assert_eq!(exported, names);
    }
}
