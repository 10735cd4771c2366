//! A fake of the port `Journal`: a disk that can fail together with its worker.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::Notify;

use super::requests::StoredRequest;
use crate::ports::*;
use crate::run::progress::{apply, running};
use tarsy_core::alert_update::{AlertUpdate, NumberedUpdate};
use tarsy_core::execution::entry::{ApprovalOutcome, Entry};
use tarsy_core::execution::event_refs::{RecordedEntry, event_of_each_entry};
use tarsy_core::execution::recovery::{LostCall, Recovery};
use tarsy_core::execution::request::rebuilt::StoredCall;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::PastScope;
use tarsy_core::skills::TextHash;
use tarsy_core::timeline::{EventDraft, EventType};

/// The time at which the disk, and with it the worker, dies: at the n-th write, before or after it is written. `Hold`
/// only blocks the worker there until the test lets it continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Never,
    Before(u32),
    After(u32),
    Hold(u32),
}

#[derive(Debug)]
pub(crate) struct FakeJournal {
    pub disk: Mutex<Disk>,
    pub died: Notify,
    pub(crate) go_on: Notify,
}

#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub record: SessionRecord,
    pub entries: BTreeMap<ExecutionId, Vec<RecordedEntry>>,
    pub events: Vec<EventDraft>,
    pub model_calls: Vec<ModelCallRecord>,
    /// The execution and the place of each of them.
    pub(crate) call_places: Vec<(ExecutionId, StoredCall)>,
    pub tool_calls: Vec<ToolCallRecord>,
    pub updates: Vec<AlertUpdate>,
    /// The earlier investigations, whatever the query.
    pub past: Past,
    /// The updates are committed before the write with this number.
    pub(crate) updates_from: u32,
    pub end: Option<SessionEnd>,
    pub skill_texts: BTreeMap<TextHash, String>,
    /// Iteration, attempt and epoch of the checkpoints with events, per execution.
    pub shown: BTreeMap<ExecutionId, Vec<(u32, u32, u32)>>,
    /// The requests for approvals, open and closed.
    pub(crate) requests: Vec<StoredRequest>,
    /// Requests of the session that the fake does not hold.
    pub(crate) asked_before: u32,
    /// Open requests of other sessions.
    pub(crate) open_elsewhere: u32,
    pub(crate) session_age: Duration,
    pub(crate) is_frozen: bool,
    /// A vote that is committed just before the next park.
    pub(crate) decides_before_park: Option<(String, ApprovalOutcome)>,
    /// The alert is resolved between the first read of the outcomes and the park; the session has an owner.
    pub(crate) is_resolved_before_park: bool,
    /// A vote that is committed just before the next checkpoint, although its request has expired.
    pub(crate) decides_before_append: Option<(String, ApprovalOutcome)>,
    /// Operators freeze all changes just before the next checkpoint.
    pub(crate) freezes_before_append: bool,
    /// The statements that read outcomes.
    pub(crate) outcome_reads: u32,
    pub epoch: u32,
    pub writes: u32,
    pub death: Death,
}

impl Disk {
    pub(super) fn updates(&self) -> u32 {
        if self.writes < self.updates_from {
            0
        } else {
            u32::try_from(self.updates.len()).unwrap()
        }
    }
}

impl FakeJournal {
    /// The first stage, which is written with the session.
    pub(super) fn begins(&self, first: StageBegun) {
        let mut disk = self.disk.lock();
        apply(&mut disk.record, 1, StageChange::Begin(first.begin));
        disk.events.push(first.event);
    }

    pub(super) async fn write<T: Default>(
        &self,
        lease: Lease,
        change: impl FnOnce(&mut Disk) -> T,
    ) -> Result<T, StoreError> {
        let (dead, answer) = {
            let mut disk = self.disk.lock();
            if disk.epoch != lease.epoch {
                return Err(StoreError::LeaseLost {
                    held: lease.epoch,
                    current: disk.epoch,
                });
            }
            disk.writes += 1;
            let now = disk.writes;
            let death = disk.death;
            // What dies with the disk writes nothing more, either.
            let (written, dead) = match death {
                Death::Never => (true, false),
                Death::Before(last) => (now < last, now >= last),
                Death::After(last) => (now <= last, now >= last),
                Death::Hold(at) => (true, now == at),
            };
            let answer = if written {
                change(&mut disk)
            } else {
                T::default()
            };
            (dead.then_some(death), answer)
        };
        if let Some(death) = dead {
            self.died.notify_one();
            if !matches!(death, Death::Hold(_)) {
                std::future::pending::<()>().await;
            }
            self.go_on.notified().await;
        }
        Ok(answer)
    }
}

impl PastSessions for FakeJournal {
    async fn past(&self, _session: SessionId, query: PastQuery) -> Result<Past, StoreError> {
        Ok(Past {
            days: query.days,
            ..self.disk.lock().past.clone()
        })
    }

    async fn past_report(
        &self,
        _session: SessionId,
        wanted: String,
        _scope: PastScope,
    ) -> Result<Option<PastReport>, StoreError> {
        let past = self.disk.lock().past.clone();
        let mut sessions = past.sessions.into_iter();
        let record = sessions.find(|record| record.session.short() == wanted);
        Ok(record.map(|record| PastReport {
            record,
            analysis: "The whole report.".to_owned(),
        }))
    }
}

impl Journal for FakeJournal {
    async fn load(&self, _session: SessionId) -> Result<SessionRecord, StoreError> {
        let disk = self.disk.lock();
        Ok(SessionRecord {
            updates: disk.updates(),
            ..disk.record.clone()
        })
    }

    async fn entries(
        &self,
        _session: SessionId,
        execution: ExecutionId,
    ) -> Result<Vec<RecordedEntry>, StoreError> {
        Ok(self
            .disk
            .lock()
            .entries
            .get(&execution)
            .cloned()
            .unwrap_or_default())
    }

    /// Every epoch counts as a claim: this disk releases no lease.
    async fn attempts(
        &self,
        _session: SessionId,
        execution: ExecutionId,
    ) -> Result<RecordedAttempts, StoreError> {
        let disk = self.disk.lock();
        let shown = disk.shown.get(&execution).cloned().unwrap_or_default();
        let since = shown.last().map_or(1, |(_, _, epoch)| *epoch);
        let by_iteration = shown
            .into_iter()
            .map(|(iteration, attempt, _)| (iteration, attempt))
            .collect();
        Ok(RecordedAttempts {
            claims: disk.epoch - since,
            by_iteration,
        })
    }

    async fn result(
        &self,
        _session: SessionId,
        timeline: Timeline,
        event: u32,
    ) -> Result<Option<StoredResult>, StoreError> {
        assert_eq!(timeline, Timeline::Own, "the fake has one session");
        let disk = self.disk.lock();
        let at = usize::try_from(event).unwrap().checked_sub(1);
        let found = at
            .and_then(|at| disk.events.get(at))
            .filter(|event| event.event_type == EventType::ToolResult);
        let call = found.and_then(|event| event.metadata["call_id"].as_str());
        let record = disk
            .tool_calls
            .iter()
            .find(|record| Some(record.call.id.as_str()) == call);
        Ok(record.map(|record| StoredResult {
            tool: record.call.tool.clone(),
            text: record.result.clone(),
        }))
    }

    async fn skill_texts(
        &self,
        hashes: Vec<TextHash>,
    ) -> Result<BTreeMap<TextHash, String>, StoreError> {
        let mut texts = self.disk.lock().skill_texts.clone();
        texts.retain(|hash, _| hashes.contains(hash));
        Ok(texts)
    }

    async fn alert_updates(
        &self,
        _session: SessionId,
        after: u32,
    ) -> Result<Vec<NumberedUpdate>, StoreError> {
        let updates = self.disk.lock().updates.clone();
        let numbered = (1_u32..)
            .zip(updates)
            .map(|(number, update)| NumberedUpdate { number, update });
        Ok(numbered
            .filter(|numbered| numbered.number > after)
            .collect())
    }

    async fn append(&self, lease: Lease, checkpoint: Checkpoint) -> Result<Appended, StoreError> {
        self.disk.lock().rivals();
        self.disk.lock().permits(&checkpoint)?;
        self.write(lease, |disk| {
            let stages = disk.record.stages.iter_mut();
            let runs = stages.flat_map(|stage| stage.executions.iter_mut());
            let sub_agents = disk.record.sub_agents.iter_mut();
            for run in runs.chain(sub_agents.map(|begun| &mut begun.execution)) {
                if run.execution_id == checkpoint.execution_id {
                    assert_eq!(run.checkpoint + 1, checkpoint.number, "compare-and-swap");
                    run.checkpoint = checkpoint.number;
                    run.status = checkpoint.status;
                    run.error.clone_from(&checkpoint.error);
                    run.analysis = checkpoint
                        .entries
                        .iter()
                        .find_map(Entry::analysis)
                        .map(str::to_owned)
                        .or_else(|| run.analysis.take());
                    let completed = checkpoint.entries.last().and_then(Entry::completed);
                    if let Some((mark, review)) = completed {
                        run.mark = mark;
                        run.review = review.cloned();
                    }
                }
            }
            for begun in &checkpoint.sub_agents {
                let execution = running(&begun.execution);
                let mut known = disk.record.sub_agents.iter();
                assert!(known.all(|known| known.execution.execution_id != execution.execution_id));
                disk.record.sub_agents.push(SubAgentRecord {
                    parent: checkpoint.execution_id,
                    execution,
                });
            }
            let before = u32::try_from(disk.events.len()).unwrap();
            let refs = event_of_each_entry(&checkpoint.entries, &checkpoint.events);
            let numbers: Vec<_> = refs
                .into_iter()
                .map(|event| event.map(|event| before + event))
                .collect();
            disk.keep_requests(&checkpoint, &numbers);
            let recorded =
                RecordedEntry::all(checkpoint.entries, numbers.clone(), Some(checkpoint.at));
            disk.entries
                .entry(checkpoint.execution_id)
                .or_default()
                .extend(recorded);
            if !checkpoint.events.is_empty() {
                let shown = (checkpoint.iteration, checkpoint.attempt, lease.epoch);
                disk.shown
                    .entry(checkpoint.execution_id)
                    .or_default()
                    .push(shown);
            }
            disk.events.extend(checkpoint.events);
            let places = (1..).zip(&checkpoint.model_calls).map(|(call_no, call)| {
                let purpose = call.purpose;
                let entries_upto = call.entries_upto;
                (
                    checkpoint.execution_id,
                    StoredCall {
                        purpose,
                        entries_upto,
                        call_no,
                    },
                )
            });
            disk.call_places.extend(places);
            disk.model_calls.extend(checkpoint.model_calls);
            disk.tool_calls.extend(checkpoint.tool_calls);
            Appended {
                events: numbers,
                updates: disk.updates(),
            }
        })
        .await
    }

    async fn step(&self, lease: Lease, step: SessionStep) -> Result<(), StoreError> {
        self.write(lease, |disk| {
            assert_eq!(disk.record.step + 1, step.number, "compare-and-swap");
            apply(&mut disk.record, step.number, step.change);
            disk.events.extend(step.events);
        })
        .await
    }

    async fn finish(&self, lease: Lease, end: SessionEnd) -> Result<(), StoreError> {
        self.write(lease, |disk| {
            disk.events.extend(end.events());
            if let Some(ended) = end.stage.clone() {
                assert_eq!(disk.record.step + 1, ended.step, "compare-and-swap");
                apply(&mut disk.record, ended.step, StageChange::End(ended.end));
            }
            disk.end = Some(end);
        })
        .await
    }

    async fn remember(&self, _session: SessionId, calls: Vec<LostCall>) -> Result<(), StoreError> {
        let recoveries = &mut self.disk.lock().record.recoveries;
        let number = u32::try_from(recoveries.len()).unwrap() + 1;
        recoveries.push(Recovery { number, calls });
        Ok(())
    }
}
