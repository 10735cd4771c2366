//! The rules for a failover that loses commits: it explains steps that were taken again, and sessions that only the
//! stream remembers. It explains no second sending of a call whose approval was published, and no session without an
//! end.

use std::collections::BTreeSet;

use chrono::Duration;
use tarsy_core::approvals::Choice;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};

use super::Violation;
use crate::proofs::chaos::facts::{Facts, ToolSent};
use crate::proofs::chaos::faults::InjectedFault;
use crate::proofs::chaos::people::{Cast, Intent, REBOOT};
use crate::proofs::chaos::plan::Fault;

/// The stream acknowledges an alert before the harness has noted it.
const NOTED_WITHIN: Duration = Duration::seconds(3);

pub(super) fn fail_overs(facts: &Facts) -> impl Iterator<Item = &InjectedFault> {
    facts
        .faults
        .iter()
        .filter(|one| one.fault == Fault::FailOver)
}

/// Whether a session may have lost commits: it ran at a failover.
pub(super) fn is_touched(facts: &Facts, session: SessionId) -> bool {
    let Some(row) = facts.sessions.get(&session) else {
        return fail_overs(facts).next().is_some();
    };
    // Its row may have been lost and written again.
    let shown = facts.shown.get(&session).and_then(|shown| shown.first());
    let began = shown.map_or(row.created_at, |shown| shown.at.min(row.created_at));
    fail_overs(facts)
        .any(|one| began <= one.until && row.finished_at.is_none_or(|end| end >= one.from))
}

/// Whether two events are the same. The rows that have the names of its stage and agent may be lost with the end of a
/// session, and are not restored.
pub(super) fn is_same(facts: &Facts, one: &TimelineEvent, other: &TimelineEvent) -> bool {
    let unnamed = |event: &TimelineEvent| TimelineEvent {
        stage: None,
        agent: None,
        ..event.clone()
    };
    one == other || is_touched(facts, one.session_id) && unnamed(one) == unnamed(other)
}

/// Whether a failover lost an alert with all its rows: its message was acknowledged before, because it waited for
/// people or was settled.
pub(super) fn lost_alert(facts: &Facts, alert: SessionId) -> bool {
    let Some(sent) = facts.ledger.sent.get(&alert) else {
        return false;
    };
    fail_overs(facts).any(|one| one.from - NOTED_WITHIN <= sent.at && sent.at <= one.until)
}

/// Whether a loss is no violation: the journals and totals of steps that were taken again, and what only the stream has
/// of a session that the database has lost.
pub(super) fn explains(facts: &Facts, violation: &Violation) -> bool {
    let Some(session) = violation.session else {
        return false;
    };
    match violation.guarantee {
        3 | 5 | 6 => is_touched(facts, session),
        2 | 7 => {
            fail_overs(facts).next().is_some()
                && !facts.sessions.contains_key(&session)
                && !facts.alerts.contains_key(&session)
        }
        _ => false,
    }
}

/// Whether the start of a call may have been lost before anything of its decision was published.
pub(super) fn was_unpublished(facts: &Facts, session: SessionId, call: &str) -> bool {
    let shown = facts.shown.get(&session).into_iter().flatten();
    let mut decided = shown.filter(|shown| {
        shown.event.event_type == EventType::ApprovalDecided
            && shown.event.metadata["call_id"] == call
            && fail_overs(facts).any(|one| shown.at <= one.until)
    });
    is_touched(facts, session) && decided.next().is_none()
}

/// The number of sessions to which the rules for lost commits apply.
pub(in crate::proofs::chaos) fn touched(facts: &Facts) -> usize {
    let sessions = facts.sessions.keys();
    sessions.filter(|id| is_touched(facts, **id)).count()
}

/// The number of people that a call of this tool needs.
fn quorum(tool: &str) -> usize {
    if tool == REBOOT { 2 } else { 1 }
}

/// Whether enough people have approved a call, in messages whose records a failover may have lost.
pub(super) fn was_approved(facts: &Facts, sent: &ToolSent, call: &str) -> bool {
    let approves = |cast: &&Cast| {
        let row = facts.people.votes.get(&cast.id);
        let counts = row.map_or_else(|| cast.acknowledged.is_some(), |row| row.refused.is_none());
        counts
            && cast.execution == sent.execution
            && cast.call == call
            && cast.intent == Intent::Counts
            && cast.choice == Choice::Approve
            && is_touched(facts, SessionId(cast.session))
    };
    let casts = facts.people.casts.iter().filter(approves);
    let people: BTreeSet<&str> = casts.map(|cast| cast.who).collect();
    people.len() >= quorum(&sent.tool)
}

/// Whether an approval speaks for a call whose journal a failover has lost, with the id that it had there.
pub(super) fn was_approved_somewhere(facts: &Facts, sent: &ToolSent) -> bool {
    let mut casts = facts.people.casts.iter();
    if casts.any(|cast| was_approved(facts, sent, &cast.call)) {
        return true;
    }
    facts.shown.values().any(|shown| {
        let mut decided = shown.iter().filter(|one| {
            one.event.event_type == EventType::ApprovalDecided
                && one.event.metadata["outcome"] == "approved"
        });
        decided.any(|decision| {
            shown.iter().any(|one| {
                one.event.event_type == EventType::ApprovalRequested
                    && one
                        .event
                        .execution_id
                        .is_some_and(|id| id.0 == sent.execution)
                    && one.event.metadata["call_id"] == decision.event.metadata["call_id"]
            })
        })
    })
}
