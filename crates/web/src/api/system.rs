//! The system in the API: the configuration of workers without secrets, their tool servers and providers.

use std::collections::BTreeSet;

use axum::Extension;
use axum::extract::State;
use serde::Serialize;

use super::{Answer, OK};
use crate::fault::Fault;
use crate::json;
use crate::ports::{Backend, Unavailable, WorkerSystem};
use crate::rights::Access;
use crate::state::Shared;
use tarsy_core::ids::WorkerId;
use tarsy_engine::ports::WorkerStatus;

/// A worker reports every ten seconds.
const STALE_MS: u64 = 30_000;

/// All known workers with their reports.
#[derive(Debug, Serialize)]
pub(crate) struct System {
    /// The workers that sent a report, or a status lately; by name.
    pub workers: Vec<KnownWorker>,
    /// The differences between workers that a person should know of.
    pub warnings: Vec<String>,
    /// Whether the broker is connected.
    pub live: bool,
}

/// A worker, and whether its report can be relied on.
#[derive(Debug, Serialize)]
pub(crate) struct KnownWorker {
    pub worker_id: WorkerId,
    pub name: String,
    pub state: ReportState,
    /// Whether the worker sent a status within the last 15 s.
    pub has_status: bool,
    pub system: Option<WorkerSystem>,
}

/// The age of a worker's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportState {
    Current,
    /// The worker has not reported for some time.
    Stale,
    /// The worker sends its status, and no report: it has started just now, is of an earlier version, or may not
    /// publish it.
    Missing,
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
) -> Answer {
    let system = system(&web, &access)?;
    if !system.live {
        // A program would take the last reports for current ones.
        let reason = "nats unavailable: reports of workers do not arrive".to_owned();
        return Err(Unavailable(reason).into());
    }
    Ok(json::response(OK, &system))
}

/// All known workers, for users who may see them.
///
/// # Errors
/// When the user may not see it.
pub(crate) fn system<B: Backend>(web: &Shared<B>, access: &Access) -> Result<System, Fault> {
    const FORBIDDEN: &str = "the system page has the configuration of workers: web.allow.system in tarsy.yaml lists the \
                             groups that may see it, and this user is in none of them";
    if !access.may_see_system {
        return Err(Fault::Forbidden(FORBIDDEN));
    }
    let backend = &web.backend;
    let systems = backend.systems();
    let statuses = backend.workers();
    Ok(System {
        warnings: warnings(&systems, &statuses),
        workers: known(systems, &statuses),
        live: backend.is_live(),
    })
}

fn known(systems: Vec<WorkerSystem>, statuses: &[WorkerStatus]) -> Vec<KnownWorker> {
    let reported: BTreeSet<WorkerId> = systems
        .iter()
        .map(|system| system.report.worker_id)
        .collect();
    let silent = statuses
        .iter()
        .filter(|status| !reported.contains(&status.worker_id))
        .map(|status| KnownWorker {
            worker_id: status.worker_id,
            name: status.name.clone(),
            state: ReportState::Missing,
            has_status: true,
            system: None,
        });
    let mut workers: Vec<KnownWorker> = silent.collect();
    workers.extend(systems.into_iter().map(|system| {
        KnownWorker {
            worker_id: system.report.worker_id,
            name: system.report.name.clone(),
            state: if system.age_ms < STALE_MS {
                ReportState::Current
            } else {
                ReportState::Stale
            },
            has_status: statuses
                .iter()
                .any(|status| status.worker_id == system.report.worker_id),
            system: Some(system),
        }
    }));
    workers.sort_by(|one, other| (&one.name, one.worker_id).cmp(&(&other.name, other.worker_id)));
    workers
}

/// Workers that are gone differ from those that have replaced them, so they do not count.
fn warnings(systems: &[WorkerSystem], statuses: &[WorkerStatus]) -> Vec<String> {
    let current: Vec<&WorkerSystem> = systems
        .iter()
        .filter(|system| system.age_ms < STALE_MS)
        .collect();
    let hashes: BTreeSet<&str> = current
        .iter()
        .map(|system| system.report.config.hash.as_str())
        .collect();
    let versions: BTreeSet<&str> = current
        .iter()
        .map(|system| system.report.version.as_str())
        .chain(statuses.iter().map(|status| status.version.as_str()))
        .collect();
    let mut warnings = Vec::new();
    if hashes.len() > 1 {
        warnings.push(format!(
            "workers have {} different configurations: which one an alert gets depends on its worker",
            hashes.len()
        ));
    }
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        warnings.push(format!(
            "workers have different versions: {}",
            versions.join(", ")
        ));
    }
    warnings
}
