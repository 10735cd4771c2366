//! Crashes and failed services: killed and restarted workers, poison alerts, given-up sessions, a read-only, restored
//! or failed-over database, summaries that are lost.

pub(crate) mod survive;
pub(crate) mod restart;
mod side_effects;
mod http_calls;
mod fallback;
mod review;
mod sub_agents;
mod summaries;
pub(crate) mod poison;
mod given_up;
mod read_only;
mod lost_commits;
mod failover;
