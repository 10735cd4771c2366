//! Fakes of the ports: a model that answers as a function of the journal, hands that count, a disk that dies.

pub(crate) mod delivery;
mod feed;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

pub(super) use self::feed::FakeFeed;
use super::ports::*;
use super::world::{Ports, World};
use crate::investigation::execution::entry::{Answer, Entry, Outcome, Role, ToolCall, Usage};
use crate::investigation::execution::event_refs::{RecordedEntry, event_of_each_entry};
use crate::investigation::execution::recovery::{LostCall, Recovery};
use crate::investigation::ids::{ExecutionId, SessionId};
use crate::investigation::plan::{
    AgentPlan, FORMAT_VERSION, Limits, Plan, StagePlan, Strategy, SuccessPolicy, ToolSpec,
};
use crate::investigation::testing::{agent_plan, changing_tool, read_only_tool};
use crate::investigation::timeline::{DeltaKind, EventDraft};

/// What the scripted model does when it has given `n` answers before, failed ones counted.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    /// Text, and calls as `(id, tool)`.
    Says(&'static str, Vec<(&'static str, &'static str)>),
    Fails,
    /// Text, to an agent that has tools; any other gets an error.
    SaysWithTools(&'static str),
    /// With an error that no repetition mends.
    Misconfigured,
    TimesOut,
    NeverAnswers,
    Panics,
    /// Nobody answers: the service is unavailable.
    Unavailable,
    /// The service is gone after it was asked.
    Breaks,
    /// After so many seconds, text and calls.
    Slowly(u64, &'static str, Vec<(&'static str, &'static str)>),
}

#[derive(Debug)]
pub(super) struct FakeModel {
    pub(super) turns: Vec<Turn>,
    /// Of the agents whose model has this name, instead.
    pub(super) others: Mutex<BTreeMap<String, Vec<Turn>>>,
    pub(super) calls: Mutex<u32>,
    pub(super) requests: Mutex<Vec<ModelRequest>>,
}

impl Model for FakeModel {
    async fn generate(
        &self,
        request: ModelRequest,
        deltas: impl Fn(DeltaKind, &str) + Send + Sync,
    ) -> Result<Answer, ModelError> {
        *lock(&self.calls) += 1;
        lock(&self.requests).push(request.clone());
        let spoke = |message: &&Message| {
            message.role == Role::Assistant
                || message.role == Role::User && message.content.contains("Error from previous attempt")
        };
        let before = request.messages.iter().filter(spoke).count();
        let failed = |timeout| {
            Err(ModelError::Failed { code: "max_retries".to_owned(), message: "provider broke".to_owned(), timeout })
        };
        let turns = lock(&self.others).get(&request.provider.model).cloned().unwrap_or_else(|| self.turns.clone());
        let mut turn = turns.get(before).cloned().unwrap_or(Turn::Says("Cause: the end", vec![]));
        if let Turn::Slowly(secs, text, calls) = turn {
            tokio::time::sleep(Duration::from_secs(secs)).await; // paused time
            turn = Turn::Says(text, calls);
        }
        match turn {
            Turn::Unavailable => Err(ModelError::Unavailable("nobody answers".to_owned())),
            Turn::Breaks => Err(ModelError::Broke("connection reset".to_owned())),
            Turn::Fails => failed(false),
            Turn::SaysWithTools(_) if request.tools.is_empty() => failed(false),
            Turn::SaysWithTools(text) => Ok(Answer { text: text.to_owned(), ..Answer::default() }),
            Turn::Misconfigured => {
                let (code, message) = ("invalid_backend".to_owned(), "no such backend".to_owned());
                Err(ModelError::Failed { code, message, timeout: false })
            }
            Turn::TimesOut => failed(true),
            Turn::NeverAnswers => std::future::pending().await,
            Turn::Panics => panic!("an answer that nobody expected"),
            Turn::Says(text, calls) | Turn::Slowly(_, text, calls) => {
                deltas(DeltaKind::Text, text);
                let call = |(id, tool): (&str, &str)| ToolCall {
                    id: id.to_owned(),
                    tool: tool.to_owned(),
                    arguments: "{}".to_owned(),
                    read_only: false,
                };
                let calls = if request.tools.is_empty() { vec![] } else { calls.into_iter().map(call).collect() };
                let usage = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
                Ok(Answer { text: text.to_owned(), calls, usage, ..Answer::default() })
            }
        }
    }

    async fn serving(&self) -> bool {
        true
    }
}

/// Counts calls by id. A tool named `x.lost` loses its answer, `x.refused` reports an error.
#[derive(Debug, Default)]
pub(super) struct FakeTools {
    pub(super) calls: Mutex<BTreeMap<String, u32>>,
    /// Every call takes so long; one that may change something is not sent after it, as if no server was there.
    pub(super) away_for: Mutex<Duration>,
}

impl Tools for FakeTools {
    async fn list(&self, _servers: &[String]) -> Listing {
        Listing { tools: tools(), unavailable: vec![] }
    }

    async fn call(&self, call: &ToolCall, _limit: u32, _timeout: Duration) -> ToolReply {
        *lock(&self.calls).entry(call.id.clone()).or_default() += 1;
        let away_for = *lock(&self.away_for);
        tokio::time::sleep(away_for).await; // paused time
        if !call.read_only && !away_for.is_zero() {
            return ToolReply::NotSent { error: "no connection".to_owned() };
        }
        if call.tool.ends_with("lost") {
            return ToolReply::NoAnswer { error: "connection reset".to_owned(), timeout: false };
        }
        let content = format!("{} says hello", call.tool);
        let bytes = content.len() as u64;
        ToolReply::Answered { content, full: None, bytes, is_error: call.tool.ends_with("refused") }
    }
}

/// When the disk, and with it the worker, dies: at the n-th write, before or after it is written. It may also only hold
/// the worker up there, until it is told to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    Never,
    Before(u32),
    After(u32),
    Hold(u32),
}

#[derive(Debug)]
pub(super) struct FakeJournal {
    pub(super) disk: Mutex<Disk>,
    pub(super) died: Notify,
    pub(super) go_on: Notify,
}

#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) record: SessionRecord,
    pub(super) entries: BTreeMap<ExecutionId, Vec<RecordedEntry>>,
    pub(super) events: Vec<EventDraft>,
    pub(super) end: Option<SessionEnd>,
    pub(super) epoch: u32,
    pub(super) writes: u32,
    pub(super) death: Death,
}

impl FakeJournal {
    async fn write<T: Default>(&self, lease: Lease, change: impl FnOnce(&mut Disk) -> T) -> Result<T, StoreError> {
        let (dead, told) = {
            let mut disk = lock(&self.disk);
            if disk.epoch != lease.epoch {
                return Err(StoreError::LeaseLost { held: lease.epoch, current: disk.epoch });
            }
            disk.writes += 1;
            let (now, death) = (disk.writes, disk.death);
            // What dies with the disk writes nothing more, either.
            let (written, dead) = match death {
                Death::Never => (true, false),
                Death::Before(last) => (now < last, now >= last),
                Death::After(last) => (now <= last, now >= last),
                Death::Hold(at) => (true, now == at),
            };
            let told = if written { change(&mut disk) } else { T::default() };
            (dead.then_some(death), told)
        };
        if let Some(death) = dead {
            self.died.notify_one();
            if !matches!(death, Death::Hold(_)) {
                std::future::pending::<()>().await;
            }
            self.go_on.notified().await;
        }
        Ok(told)
    }
}

impl Journal for FakeJournal {
    async fn load(&self, _session: SessionId) -> Result<SessionRecord, StoreError> {
        Ok(lock(&self.disk).record.clone())
    }

    async fn entries(&self, _session: SessionId, execution: ExecutionId) -> Result<Vec<RecordedEntry>, StoreError> {
        Ok(lock(&self.disk).entries.get(&execution).cloned().unwrap_or_default())
    }

    async fn append(&self, lease: Lease, checkpoint: Checkpoint) -> Result<Vec<Option<u32>>, StoreError> {
        self.write(lease, |disk| {
            for run in disk.record.stages.iter_mut().flat_map(|stage| stage.executions.iter_mut()) {
                if run.execution_id == checkpoint.execution_id {
                    assert_eq!(run.checkpoint + 1, checkpoint.number, "compare-and-swap");
                    run.checkpoint = checkpoint.number;
                    run.status = checkpoint.status;
                    run.error.clone_from(&checkpoint.error);
                    run.analysis = checkpoint.entries.iter().find_map(analysis).or_else(|| run.analysis.take());
                }
            }
            let before = u32::try_from(disk.events.len()).unwrap();
            let told = event_of_each_entry(&checkpoint.entries, &checkpoint.events);
            let numbers: Vec<_> = told.into_iter().map(|event| event.map(|event| before + event)).collect();
            let recorded = RecordedEntry::all(checkpoint.entries, numbers.clone());
            disk.entries.entry(checkpoint.execution_id).or_default().extend(recorded);
            disk.events.extend(checkpoint.events);
            numbers
        })
        .await
    }

    async fn step(&self, lease: Lease, step: SessionStep) -> Result<(), StoreError> {
        self.write(lease, |disk| {
            assert_eq!(disk.record.step + 1, step.number, "compare-and-swap");
            disk.record.step = step.number;
            disk.events.extend(step.events);
            let begin = match step.change {
                StageChange::Begin(begin) => begin,
                StageChange::End(end) => {
                    disk.record.stages.last_mut().unwrap().status = end.status;
                    return;
                }
            };
            let executions = begin.executions.into_iter().map(|run| ExecutionRecord {
                execution_id: run.execution_id,
                agent_no: run.agent_no,
                status: RunStatus::Running,
                checkpoint: 0,
                analysis: None,
                error: None,
            });
            disk.record.stages.push(StageRecord {
                stage_no: begin.stage_no,
                status: RunStatus::Running,
                executions: executions.collect(),
            });
        })
        .await
    }

    async fn finish(&self, lease: Lease, end: SessionEnd) -> Result<(), StoreError> {
        self.write(lease, |disk| {
            disk.events.push(end.event.clone());
            disk.end = Some(end);
        })
        .await
    }

    async fn remember(&self, _session: SessionId, calls: Vec<LostCall>) -> Result<(), StoreError> {
        let recoveries = &mut lock(&self.disk).record.recoveries;
        let number = u32::try_from(recoveries.len()).unwrap() + 1;
        recoveries.push(Recovery { number, calls });
        Ok(())
    }
}

fn analysis(entry: &Entry) -> Option<String> {
    if let Entry::Ended { outcome: Outcome::Completed { analysis, .. } } = entry {
        Some(analysis.clone())
    } else {
        None
    }
}

#[derive(Debug)]
pub(super) struct Fakes;

impl World for Fakes {
    type Model = FakeModel;
    type Tools = FakeTools;
    type Journal = FakeJournal;
    type Feed = FakeFeed;
}

/// What a test sees of an investigation.
pub(super) struct Scene {
    pub(super) ports: Ports<Fakes>,
    pub(super) session: SessionId,
}

impl Scene {
    pub(super) fn new(strategy: Strategy, max_iterations: u32, turns: Vec<Turn>) -> Self {
        let session = SessionId(Uuid::from_u128(7));
        let record =
            SessionRecord { plan: plan(strategy, max_iterations), step: 0, stages: vec![], recoveries: vec![] };
        let disk = Disk {
            record,
            entries: BTreeMap::new(),
            events: vec![],
            end: None,
            epoch: 1,
            writes: 0,
            death: Death::Never,
        };
        let ports = Ports {
            model: Arc::new(FakeModel {
                turns,
                others: Mutex::default(),
                calls: Mutex::new(0),
                requests: Mutex::default(),
            }),
            tools: Arc::new(FakeTools::default()),
            journal: Arc::new(FakeJournal { disk: Mutex::new(disk), died: Notify::new(), go_on: Notify::new() }),
            feed: Arc::new(FakeFeed::default()),
        };
        Self { ports, session }
    }

    pub(super) fn disk(&self) -> MutexGuard<'_, Disk> {
        lock(&self.ports.journal.disk)
    }

    pub(super) fn lease(&self) -> Lease {
        Lease { session_id: self.session, epoch: self.disk().epoch, token: Uuid::nil() }
    }

    /// The one execution's journal.
    pub(super) fn journal(&self) -> Vec<Entry> {
        let disk = self.disk();
        disk.entries.values().next().into_iter().flatten().map(|recorded| recorded.entry.clone()).collect()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tools() -> Vec<ToolSpec> {
    let read_only = ["k8s.get", "k8s.lost", "k8s.refused"].map(read_only_tool);
    read_only.into_iter().chain(["k8s.restart", "k8s.patch.lost"].map(changing_tool)).collect()
}

fn plan(strategy: Strategy, max_iterations: u32) -> Plan {
    let agent = AgentPlan {
        limits: Limits { max_iterations, ..Limits::default() },
        system_prompt: "You are an SRE.".to_owned(),
        user_prompt: "The disk is full.".to_owned(),
        conclusion_prompt: "Conclude now.".to_owned(),
        ..agent_plan(strategy, tools())
    };
    let stage = StagePlan { name: "investigate".to_owned(), success_policy: SuccessPolicy::Any, agents: vec![agent] };
    Plan { version: FORMAT_VERSION, chain: "default".to_owned(), stages: vec![stage], unavailable_servers: vec![] }
}
