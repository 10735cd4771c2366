//! Tests of calls that wait for people: over fakes, in paused time.

mod asking;
mod ends;
mod losses;
mod siblings;
mod survival;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{control, run};
use crate::run::control::Interrupted;
use crate::testing::{Death, Disk, Scene, Turn, approval_rule};
use tarsy_core::execution::entry::{ApprovalOutcome, Entry};
use tarsy_core::plan::{ApprovalRule, OnTimeout, Strategy, WhenResolved};

const TIMEOUT: Duration = Duration::from_hours(4);
const VALID_FOR: Duration = Duration::from_mins(15);

/// The reaction of people to a call, when the session waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Approve,
    Deny,
    DenyAll,
    /// Nothing, until the request expires.
    Sleep,
    /// They approve, and the worker comes too late.
    ApproveTooEarly,
    /// They approve, and operators freeze all changes before the call is sent.
    ApproveInFreeze,
}

/// The acts by call, `*` for every other one; without it, they are approved.
type People = BTreeMap<&'static str, Act>;

fn people(acts: &[(&'static str, Act)]) -> People {
    acts.iter().copied().collect()
}

fn rule() -> ApprovalRule {
    approval_rule(TIMEOUT, VALID_FOR)
}

/// A scene in which a person decides about every call of the changing tools.
fn scene(strategy: Strategy, turns: Vec<Turn>) -> Scene {
    scene_with(rule(), strategy, turns)
}

fn scene_with(rule: ApprovalRule, strategy: Strategy, turns: Vec<Turn>) -> Scene {
    let scene = Scene::new(strategy, 9, turns);
    scene.disk().needs_approval(&rule);
    scene
}

/// Does the act about the first open request.
async fn act(scene: &Scene, people: &People) {
    let open = {
        let disk = scene.disk();
        let mut open = disk.requests.iter().filter(|request| request.is_open());
        open.next().map(|request| request.asked.call_id.clone())
    };
    let call_id = open.expect("the session waits for something");
    let decide = |outcome| {
        scene.disk().decide(&call_id, outcome, Some("not at noon"));
    };
    let of_call = people.get(call_id.as_str()).or_else(|| people.get("*"));
    match of_call.copied().unwrap_or(Act::Approve) {
        Act::Approve => decide(ApprovalOutcome::Approved),
        Act::Deny => decide(ApprovalOutcome::Denied),
        Act::DenyAll => decide(ApprovalOutcome::DeniedSession),
        Act::Sleep => tokio::time::advance(TIMEOUT).await,
        Act::ApproveTooEarly => {
            decide(ApprovalOutcome::Approved);
            tokio::time::advance(VALID_FOR).await;
        }
        Act::ApproveInFreeze => {
            decide(ApprovalOutcome::Approved);
            scene.disk().is_frozen = true;
        }
    }
}

/// Runs the session to its end, whenever people wake it and after the death of its worker. Returns how often it was
/// parked.
async fn drive(scene: &Scene, people: &People) -> u32 {
    let mut parked = 0;
    for _ in 0..50 {
        let ended = tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {
                scene.disk().epoch += 1;
                scene.disk().death = Death::Never;
                // The end was committed with its worker's last breath.
                if scene.disk().end.is_some() {
                    return parked;
                }
                continue;
            }
            ended = run(scene, control()) => ended,
        };
        match ended {
            Ok(()) => return parked,
            Err(Interrupted::Parked) => {
                parked += 1;
                act(scene, people).await;
            }
            Err(other) => panic!("interrupted: {other}"),
        }
    }
    panic!("the session never ends: {:#?}", scene.journal())
}

/// The number of times that a call was sent.
fn sent(scene: &Scene, call_id: &str) -> u32 {
    let calls = scene.ports.tools.calls.lock();
    calls.get(call_id).copied().unwrap_or_default()
}

/// The ends of requests in the journals, in order, with their calls.
fn outcomes(disk: &Disk) -> Vec<(String, ApprovalOutcome)> {
    let entries = disk.entries.values().flatten();
    entries
        .filter_map(|recorded| {
            if let Entry::ApprovalEnded(ended) = &recorded.entry {
                Some((ended.call_id.clone(), ended.outcome))
            } else {
                None
            }
        })
        .collect()
}

/// The result of a call, as the model reads it.
fn result(scene: &Scene, call_id: &str) -> String {
    let disk = scene.disk();
    let entries = disk.entries.values().flatten();
    let mut results = entries.filter_map(|recorded| recorded.entry.result());
    let found = results.find(|result| result.call_id == call_id);
    found
        .map(|result| result.content.clone())
        .unwrap_or_default()
}
