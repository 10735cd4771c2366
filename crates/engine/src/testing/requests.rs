//! The requests for approvals on the fake disk, with the guards of the store.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use tokio::time::Instant;

use super::journal::{Disk, FakeJournal};
use crate::ports::*;
use tarsy_core::alert::AlertStatus;
use tarsy_core::alert_update::AlertUpdate;
use tarsy_core::approvals::Channel;
use tarsy_core::execution::entry::{ApprovalOutcome, Entry};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{ApprovalRule, OnTimeout, WhenResolved};
use tarsy_core::timeline::{EventDraft, EventType};

/// A request, as the store has it.
#[derive(Clone, Debug)]
pub(crate) struct StoredRequest {
    pub(crate) event: u32,
    pub(crate) execution_id: ExecutionId,
    pub(crate) asked: AskedApproval,
    asked_at: Instant,
    decided: Option<(Decided, Instant)>,
    pub(crate) closed: Option<ClosedAs>,
}

impl StoredRequest {
    fn left(&self) -> Duration {
        self.asked.timeout.saturating_sub(self.asked_at.elapsed())
    }

    /// Whether people may decide about it.
    pub(crate) fn is_open(&self) -> bool {
        self.closed.is_none() && self.decided.is_none() && !self.left().is_zero()
    }

    /// The decision of people as it counts now: an approval lapses.
    fn decision(&self) -> Option<Decided> {
        let (decided, at) = self.decided.as_ref()?;
        let mut decided = decided.clone();
        let is_late = at.elapsed() >= self.asked.valid_for;
        if decided.outcome == ApprovalOutcome::Approved && is_late {
            decided.outcome = ApprovalOutcome::Lapsed;
        }
        Some(decided)
    }
}

/// A rule with one approver on the page.
pub(crate) fn approval_rule(timeout: Duration, valid_for: Duration) -> ApprovalRule {
    ApprovalRule {
        policy: "default".to_owned(),
        quorum: 1,
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap(),
        valid_for_ms: u64::try_from(valid_for.as_millis()).unwrap(),
        on_timeout: OnTimeout::Deny,
        on_resolved: WhenResolved::Withdraw,
        channels: vec![Channel::Web],
        other_person: false,
    }
}

impl Disk {
    /// A person decides about every call of the changing tools.
    pub(crate) fn needs_approval(&mut self, rule: &ApprovalRule) {
        let stages = self.record.plan.stages.iter_mut();
        for agent in stages.flat_map(|stage| &mut stage.agents) {
            let tools = Arc::make_mut(agent).tools.iter_mut();
            for tool in tools.filter(|tool| !tool.read_only) {
                tool.approval = Some(rule.clone());
            }
        }
    }

    fn event_seq(&self) -> u32 {
        u32::try_from(self.events.len()).unwrap()
    }

    /// The request of a call that the journal has not closed.
    pub(crate) fn request(&mut self, call_id: &str) -> &mut StoredRequest {
        let mut requests = self.requests.iter_mut();
        requests
            .find(|request| request.asked.call_id == call_id && request.closed.is_none())
            .unwrap_or_else(|| panic!("no request of {call_id}"))
    }

    /// A person decides; every vote takes an event number.
    pub(crate) fn decide(
        &mut self,
        call_id: &str,
        outcome: ApprovalOutcome,
        comment: Option<&str>,
    ) {
        assert!(
            self.request(call_id).is_open(),
            "{call_id} is decided or expired"
        );
        self.record_decision(call_id, outcome, comment);
    }

    fn record_decision(&mut self, call_id: &str, outcome: ApprovalOutcome, comment: Option<&str>) {
        let decided = Decided {
            outcome,
            by: vec!["ana".to_owned()],
            comment: comment.map(str::to_owned),
            channel: None,
            at: DateTime::UNIX_EPOCH,
        };
        let request = self.request(call_id);
        request.decided = Some((decided, Instant::now()));
        let metadata = serde_json::json!({"outcome": outcome.as_str()});
        let event = EventDraft::new(EventType::ApprovalDecided, "ana", metadata);
        self.events.push(event);
    }

    /// The alert is resolved; the event takes a number.
    fn resolve(&mut self) {
        self.updates.push(AlertUpdate {
            status: Some(AlertStatus::Resolved),
            ..AlertUpdate::default()
        });
        let metadata = serde_json::json!({});
        let event = EventDraft::new(EventType::AlertResolved, "resolved", metadata);
        self.events.push(event);
    }

    /// Commits that others make just before a checkpoint.
    pub(super) fn rivals(&mut self) {
        self.is_frozen |= std::mem::take(&mut self.freezes_before_append);
        if let Some((call_id, outcome)) = self.decides_before_append.take() {
            self.record_decision(&call_id, outcome, None);
        }
    }

    /// The guards of a checkpoint that closes requests.
    pub(super) fn permits(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let undecided = |why: &str| Err(StoreError::Undecided(why.to_owned()));
        for closed in &checkpoint.closed {
            let mut requests = self.requests.iter();
            let found = requests.find(|request| {
                request.execution_id == checkpoint.execution_id
                    && request.asked.call_id == closed.call_id
                    && request.closed.is_none()
            });
            let Some(request) = found else {
                return undecided("closed");
            };
            let decision = request.decision().map(|decided| decided.outcome);
            let is_approved = decision == Some(ApprovalOutcome::Approved);
            let closes_as_approved =
                closed.closed_as == ClosedAs::Outcome(ApprovalOutcome::Approved);
            if closes_as_approved && (!is_approved || self.is_frozen) {
                return undecided("not approved");
            }
            if closed.seen.is_some_and(|seen| seen != self.event_seq()) {
                return undecided("changed");
            }
        }
        Ok(())
    }

    /// Inserts and closes the requests of a checkpoint.
    pub(super) fn keep_requests(&mut self, checkpoint: &Checkpoint, numbers: &[Option<u32>]) {
        for asked in &checkpoint.asked {
            let mut entries = checkpoint.entries.iter().zip(numbers);
            let number = entries.find_map(|(entry, number): (&Entry, &Option<u32>)| {
                let is_asked = matches!(entry, Entry::ApprovalRequested(requested)
                    if requested.call_id == asked.call_id);
                if is_asked { *number } else { None }
            });
            self.requests.push(StoredRequest {
                event: number.expect("a request has an event"),
                execution_id: checkpoint.execution_id,
                asked: asked.clone(),
                asked_at: Instant::now(),
                decided: None,
                closed: None,
            });
        }
        for closed in &checkpoint.closed {
            let mut requests = self.requests.iter_mut();
            let request = requests.find(|request| {
                request.execution_id == checkpoint.execution_id
                    && request.asked.call_id == closed.call_id
            });
            request.unwrap().closed = Some(closed.closed_as);
        }
    }
}

impl WaitingCalls for FakeJournal {
    async fn outcomes(&self, _session: SessionId) -> Result<Outcomes, StoreError> {
        let mut disk = self.disk.lock();
        disk.outcome_reads += 1;
        let open = disk
            .requests
            .iter()
            .filter(|request| request.closed.is_none());
        let requests = open.map(|request| WaitingCall {
            event: request.event,
            execution_id: request.execution_id,
            call_id: request.asked.call_id.clone(),
            waited: request.asked_at.elapsed(),
            left: request.left(),
            decided: request.decision(),
        });
        Ok(Outcomes {
            event_seq: disk.event_seq(),
            updates: disk.updates(),
            is_frozen: disk.is_frozen,
            requests: requests.collect(),
        })
    }

    async fn request_counts(
        &self,
        _session: SessionId,
        _enough: u32,
    ) -> Result<RequestCounts, StoreError> {
        let disk = self.disk.lock();
        let open = disk
            .requests
            .iter()
            .filter(|request| request.is_open())
            .count();
        Ok(RequestCounts {
            open: disk.open_elsewhere + u32::try_from(open).unwrap(),
            of_session: disk.asked_before + u32::try_from(disk.requests.len()).unwrap(),
            age: disk.session_age,
        })
    }

    async fn park(&self, lease: Lease, seen: u32) -> Result<Parking, StoreError> {
        let is_same = {
            let mut disk = self.disk.lock();
            if let Some((call_id, outcome)) = disk.decides_before_park.take() {
                disk.decide(&call_id, outcome, None);
            }
            if std::mem::take(&mut disk.is_resolved_before_park) {
                disk.resolve();
            }
            let is_open = disk.requests.iter().any(StoredRequest::is_open);
            disk.epoch == lease.epoch && disk.event_seq() == seen && is_open
        };
        if !is_same {
            return Ok(Parking::Changed);
        }
        let parked = self.write(lease, |disk| {
            disk.epoch += 1;
            let event = EventDraft::new(EventType::SessionWaiting, "waits", serde_json::json!({}));
            disk.events.push(event);
        });
        parked.await.map(|()| Parking::Parked)
    }
}
