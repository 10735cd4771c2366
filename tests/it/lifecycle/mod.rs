//! The life of alerts and sessions: start of a worker, delivery, cooldown, chains, tools, cancellation and settlement.

mod pooler;
pub(crate) mod start;
mod trust;
mod delivery;
mod links;
mod notifications;
mod alert_updates;
mod dedupe;
pub(crate) mod routes;
mod chains;
mod tools;
mod session_scope;
mod runbooks;
mod skills;
mod model_calls;
mod approvals;
mod slack;
mod cancel;
mod clock;
mod settling;
mod metrics;
mod tracing;
