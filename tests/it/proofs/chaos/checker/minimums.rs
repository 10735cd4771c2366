//! The least that has to happen in a run, so that its guarantees are not kept by doing nothing.

use std::collections::BTreeSet;

use tarsy_core::approvals::Channel;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use super::Violation;
use crate::proofs::chaos::facts::Facts;
use crate::proofs::chaos::plan::Fault;

/// The least of a run.
#[derive(Clone, Copy, Debug)]
pub(in crate::proofs::chaos) struct Least {
    /// Sessions that ask people.
    pub(in crate::proofs::chaos) asking: usize,
    /// Channels with a vote that counts.
    pub(in crate::proofs::chaos) channels: usize,
    pub(in crate::proofs::chaos) fail_overs: usize,
}

/// The minimums that a run does not reach.
pub(in crate::proofs::chaos) fn lacks(facts: &Facts, least: Least) -> Vec<Violation> {
    let rows = facts.people.requests.iter().map(|one| one.session_id);
    // A failover may have lost the row.
    let shown = facts.shown.iter().filter(|(_, shown)| {
        let mut kinds = shown.iter().map(|one| &one.event.event_type);
        kinds.any(|kind| *kind == EventType::ApprovalRequested)
    });
    let asking: BTreeSet<Uuid> = rows.chain(shown.map(|(id, _)| id.0)).collect();
    let counted = facts.people.casts.iter().filter(|cast| {
        let row = facts.people.votes.get(&cast.id);
        row.is_some_and(|vote| vote.refused.is_none())
    });
    let channels: BTreeSet<Channel> = counted.map(|cast| cast.channel).collect();
    let sent = facts.tool_calls.keys().filter(|sent| sent.is_guarded());
    let faults = facts.faults.iter();
    let fail_overs = faults.filter(|one| one.fault == Fault::FailOver).count();
    [
        ("sessions ask people", asking.len(), least.asking),
        (
            "channels have a vote that counts",
            channels.len(),
            least.channels,
        ),
        ("calls that need a person are sent", sent.count(), 1),
        ("failovers have happened", fail_overs, least.fail_overs),
    ]
    .into_iter()
    .filter(|(_, number, due)| number < due)
    .map(|(what, number, due)| Violation {
        guarantee: 12,
        session: None,
        what: format!("{number} {what}, at least {due} are due"),
    })
    .collect()
}
