//! The end of a session: committed once, by the owner of its lease.

use std::time::Duration;

use serde_json::json;

use super::control::Interrupted;
use super::performed::now;
use crate::ports::{CancelRequests as _, DeadReason, Feed, Journal, Lease, RunStatus, SessionEnd};
use crate::world::{Ports, World};
use tarsy_core::chain::EarlyEnd;
use tarsy_core::execution::entry::StopReason;
use tarsy_core::ids::SessionId;

/// The time limit for the name of the person who asked to cancel: the end of the session does not wait longer for it.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);

/// The committed end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnded {
    pub status: RunStatus,
    pub reason: StopReason,
    /// Answers of models in all executions; `None` if the session ended without reading its journal.
    pub iterations: Option<u32>,
}

/// Ends a session whose chain must not continue.
///
/// # Errors
/// When another worker owns the session, or the session has to be released.
pub(crate) async fn end_early<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    end: EarlyEnd,
) -> Result<SessionEnded, Interrupted> {
    let reason = end.stop_reason();
    let (status, error) = end.outcome();
    let content = error.clone().unwrap_or_else(|| sentence(status));
    let end = SessionEnd {
        status,
        reason,
        final_analysis: None,
        mark: None,
        executive_summary: None,
        error,
        at: now(),
        event: status.end_event(content, json!({"stop_reason": reason.as_str()})),
        stage: None,
        dead_letter: (reason == StopReason::AttemptsExhausted)
            .then_some(DeadReason::AttemptsExhausted),
        covered_updates: 0,
    };
    commit_end(ports, lease, end).await?;
    Ok(SessionEnded {
        status,
        reason,
        iterations: None,
    })
}

pub(super) async fn commit_end<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    mut end: SessionEnd,
) -> Result<(), Interrupted> {
    let status = end.status.as_str();
    if end.status == RunStatus::Cancelled {
        end.event = end
            .event
            .with("cancelled_by", requested_by(ports, lease.session_id).await);
    }
    ports.journal.finish(lease, end).await?;
    metrics::counter!("tarsy_sessions_finished_total", "status" => status).increment(1);
    ports.feed.committed(lease.session_id);
    Ok(())
}

/// The name of the person who asked to cancel a session, if the broker has it and answers soon.
pub async fn requested_by<W: World>(ports: &Ports<W>, session: SessionId) -> Option<String> {
    tokio::time::timeout(NAME_TIMEOUT, ports.cancel_requests.requested_by(session))
        .await
        .ok()
        .flatten()
}

pub(super) fn sentence(status: RunStatus) -> String {
    format!("Investigation {}", status.as_str().replace('_', " "))
}
