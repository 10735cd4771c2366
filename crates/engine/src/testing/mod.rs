//! Fakes of every port. The model answers as a function of the journal, and the disk can die at any write.

mod model;
mod journal;
mod requests;
mod sessions;
mod intake;
mod broker;
mod feed;
pub(crate) mod delivery;
pub(crate) mod written;

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

pub(super) use self::broker::{
    BrokerAnswers, FakeCancelRequests, FakeDelivery, FakePresence, FakeQueue,
};
pub(super) use self::feed::FakeFeed;
pub(super) use self::intake::FakeIntake;
pub(super) use self::journal::{Death, Disk, FakeJournal};
use self::model::tools;
pub(super) use self::model::{FakeModel, FakeTools, Turn};
pub(super) use self::requests::approval_rule;
pub(super) use self::sessions::FakeSessions;
use super::ports::*;
use super::world::{Ports, World};
use tarsy_core::alert::policy::OnResolved;
use tarsy_core::execution::entry::Entry;
use tarsy_core::ids::SessionId;
use tarsy_core::plan::{
    AgentPlan, FORMAT_VERSION, Limits, Plan, StagePlan, Strategy, SuccessPolicy,
};
use tarsy_core::testing::agent_plan;

#[derive(Debug)]
pub(super) struct Fakes;

impl World for Fakes {
    type Model = FakeModel;
    type Tools = FakeTools;
    type Journal = FakeJournal;
    type Feed = FakeFeed;
    type Sessions = FakeSessions;
    type Intake = FakeIntake;
    type Delivery = FakeDelivery;
    type Queue = FakeQueue;
    type CancelRequests = FakeCancelRequests;
    type Presence = FakePresence;
}

/// The parts of an investigation that a test sees.
pub(super) struct Scene {
    pub(super) ports: Arc<Ports<Fakes>>,
    pub(super) session: SessionId,
}

impl Scene {
    pub(super) fn new(strategy: Strategy, max_iterations: u32, turns: Vec<Turn>) -> Self {
        let session = SessionId(Uuid::from_u128(7));
        let record = SessionRecord {
            plan: plan(strategy, max_iterations),
            step: 0,
            updates: 0,
            stages: vec![],
            recoveries: vec![],
            sub_agents: vec![],
        };
        let disk = Disk {
            record,
            entries: BTreeMap::new(),
            events: vec![],
            model_calls: vec![],
            call_places: vec![],
            tool_calls: vec![],
            updates: vec![],
            past: Past::default(),
            updates_from: 0,
            end: None,
            shown: BTreeMap::new(),
            skill_texts: BTreeMap::new(),
            requests: vec![],
            asked_before: 0,
            open_elsewhere: 0,
            session_age: Duration::ZERO,
            is_frozen: false,
            decides_before_park: None,
            is_resolved_before_park: false,
            decides_before_append: None,
            freezes_before_append: false,
            outcome_reads: 0,
            epoch: 1,
            writes: 0,
            death: Death::Never,
        };
        let ports = Arc::new(Ports {
            model: Arc::new(FakeModel::new(turns)),
            tools: Arc::new(FakeTools::default()),
            journal: Arc::new(FakeJournal {
                disk: Mutex::new(disk),
                died: Notify::new(),
                go_on: Notify::new(),
            }),
            feed: Arc::new(FakeFeed::default()),
            sessions: Arc::new(FakeSessions::new(vec![], Claim::Unknown, delivery::SETTLED)),
            intake: Arc::new(FakeIntake {
                plan: plan(strategy, max_iterations),
            }),
            queue: Arc::default(),
            cancel_requests: Arc::default(),
            presence: Arc::default(),
        });
        Self { ports, session }
    }

    pub(super) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.ports.journal.disk.lock()
    }

    pub(super) fn lease(&self) -> Lease {
        Lease {
            session_id: self.session,
            epoch: self.disk().epoch,
            token: Uuid::nil(),
        }
    }

    /// The one execution's journal.
    pub(super) fn journal(&self) -> Vec<Entry> {
        let disk = self.disk();
        disk.entries
            .values()
            .next()
            .into_iter()
            .flatten()
            .map(|recorded| recorded.entry.clone())
            .collect()
    }
}

fn plan(strategy: Strategy, max_iterations: u32) -> Plan {
    let agent = AgentPlan {
        limits: Limits {
            max_iterations,
            ..Limits::default()
        },
        system_prompt: "You are an SRE.".to_owned(),
        user_prompt: "The disk is full.".to_owned(),
        conclusion_prompt: "Conclude now.".to_owned(),
        several_actions: strategy.writes_calls(),
        ..agent_plan(strategy, tools())
    };
    let stage = StagePlan {
        name: "investigate".to_owned(),
        success_policy: SuccessPolicy::Any,
        agents: vec![agent.into()],
        review: None,
    };
    Plan {
        version: FORMAT_VERSION,
        chain: "default".to_owned(),
        route: None,
        stages: vec![stage],
        unavailable_servers: vec![],
        on_resolved: OnResolved::default(),
    }
}
