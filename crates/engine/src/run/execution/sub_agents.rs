//! Sub-agents: their executions begin with the facts of their dispatch, and run while their parent waits.
//!
//! Each has a journal of its own, so a worker that takes over reads those that have ended and continues the others. The
//! parent appends their results in one checkpoint, in the order of its calls.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{Assignment, Execution};
use crate::ports::{ExecutionBegin, ExecutionRecord, Lease, RunStatus, SubAgentBegin, ToolReply};
use crate::run::control::{Control, Interrupted, ReleaseReason, more_serious};
use crate::run::instruments;
use crate::run::performed::Performed;
use crate::run::progress::{EndedExecution, running};
use crate::run::tool_calls;
use crate::trace::gen_ai;
use crate::world::{Ports, World};
use tarsy_core::chain::Reserve;
use tarsy_core::execution::dispatch::{GroupCall, MAX_AT_ONCE, group, plan_of, tokens_of_each};
use tarsy_core::execution::entry::{Dispatched, Entry, StopReason};
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::AgentPlan;
use tarsy_core::visible::is_blank;

/// The executions of the sub-agents that these entries begin.
pub(super) fn begun(plan: &AgentPlan, entries: &[Entry]) -> Vec<SubAgentBegin> {
    let dispatched = entries.iter().filter_map(Entry::dispatched);
    dispatched
        .filter_map(|dispatched| {
            let agent = plan.sub_agent(&dispatched.agent)?;
            Some(SubAgentBegin {
                call_id: dispatched.call_id.clone(),
                execution: ExecutionBegin {
                    agent: agent.name.clone(),
                    ..ExecutionBegin::new(dispatched.execution_id, 0, &agent.plan)
                },
            })
        })
        .collect()
}

/// A sub-agent that has ended.
struct Ended {
    execution: EndedExecution,
    /// The time that it took in this run.
    took: Duration,
}

type Ends = BTreeMap<ExecutionId, Ended>;
type Running = Pin<Box<dyn Future<Output = Result<Ended, Interrupted>> + Send>>;

impl<W: World> Execution<W> {
    /// Runs these sub-agents to their ends and appends their results. The time of the iteration stands still meanwhile.
    pub(super) async fn await_sub_agents(
        &mut self,
        awaited: Vec<ExecutionId>,
    ) -> Result<(), Interrupted> {
        let began = Instant::now();
        let ends = self.run_sub_agents(&awaited).await?;
        self.iteration.allowed += began.elapsed();
        let outcomes = self.results_of(ends)?;
        instruments::tools_ended(
            self.ids(),
            self.state.iteration(),
            outcomes.performed.entries.len(),
            &outcomes.performed.tool_calls,
            began.elapsed(),
        );
        self.commit(outcomes.performed).await?;
        for (agent, outcome) in outcomes.counted {
            metrics::counter!("tarsy_agents_dispatched_total", "agent" => agent, "outcome" => outcome)
                .increment(1);
        }
        Ok(())
    }

    /// Runs the sub-agents, some at a time. An interrupted one does not stop those that run, and none begins after it.
    async fn run_sub_agents(&self, awaited: &[ExecutionId]) -> Result<Ends, Interrupted> {
        let deadline = self
            .time
            .map(|time| time.soft)
            .or_else(|| self.control.deadline());
        let (control, _timer) = self.control.within_run(deadline, self.stops_sub_agents());
        let mut waiting = VecDeque::new();
        for id in awaited {
            waiting.push_back(self.assignment(*id)?);
        }
        let mut begun = JoinSet::new();
        let mut result = Ok(());
        let mut ends = Ends::new();
        loop {
            while result.is_ok()
                && begun.len() < MAX_AT_ONCE
                && let Some(assignment) = waiting.pop_front()
            {
                let span = gen_ai::agent(&assignment.plan.name, assignment.execution.execution_id);
                let run = run(
                    Arc::clone(&self.ports),
                    self.lease,
                    control.clone(),
                    assignment,
                );
                begun.spawn(run.instrument(span));
            }
            let Some(ended) = begun.join_next().await else {
                return result.map(|()| ends);
            };
            let ended = ended.unwrap_or_else(|panic| {
                tracing::error!(session_id = %self.lease.session_id, "execution panicked: {panic}");
                Err(Interrupted::Panicked)
            });
            let ended = ended.map(|ended| {
                ends.insert(ended.execution.record.execution_id, ended);
            });
            result = more_serious(result, ended);
        }
    }

    /// The reason for which no sub-agent may begin a call any more: that of the journal.
    fn stops_sub_agents(&self) -> Option<StopReason> {
        if self.state.is_out_of_time() {
            return Some(StopReason::Deadline);
        }
        if self.state.is_stopped_at_once() {
            return self.state.stopped();
        }
        None
    }

    fn assignment(&self, id: ExecutionId) -> Result<Assignment, ReleaseReason> {
        let dispatched = self
            .state
            .entries()
            .iter()
            .filter_map(Entry::dispatched)
            .find(|dispatched: &&Dispatched| dispatched.execution_id == id);
        let plan = dispatched
            .and_then(|dispatched| plan_of(self.state.plan(), &dispatched.agent, &dispatched.task));
        let mut plan = plan.ok_or_else(|| {
            ReleaseReason::Incompatible(format!("the plan has no agent for execution {id}"))
        })?;
        plan.limits.max_tokens = tokens_of_each(&self.state, plan.limits.max_tokens);
        let own = if plan.wraps_up() { plan.wrap_up_ms } else { 0 };
        let known = self.sub_agents.iter().find(|run| run.execution_id == id);
        let begun = running(&ExecutionBegin::new(id, 0, &plan));
        Ok(Assignment {
            execution: known.cloned().unwrap_or(begun),
            plan: Arc::new(plan),
            on_resolved: self.on_resolved,
            context: None,
            // It has no calls that must not be sent again.
            recoveries: Vec::new(),
            // Its deadline is the soft deadline of its parent.
            reserve: Reserve {
                own: Duration::from_millis(own),
                later: Duration::ZERO,
            },
            sub_agents: Vec::new(),
            room: Arc::clone(&self.room),
            max_open: self.max_open,
        })
    }

    /// The results of a group of calls, in their order.
    fn results_of(&self, mut ends: Ends) -> Result<Outcomes, ReleaseReason> {
        let mut outcomes = Outcomes::default();
        for call in group(&self.state) {
            match call {
                GroupCall::Begun(call, dispatched) => {
                    let ended = ends.remove(&dispatched.execution_id).ok_or_else(|| {
                        let id = dispatched.execution_id;
                        ReleaseReason::Incompatible(format!("execution {id} has not ended"))
                    })?;
                    let answer = Answered::new(&ended.execution.record);
                    outcomes
                        .counted
                        .push((dispatched.agent.clone(), answer.outcome));
                    let reply = ToolReply::Answered {
                        content: answer.content,
                        is_error: answer.outcome != COMPLETED,
                    };
                    let performed = &mut outcomes.performed;
                    let plan = self.state.plan();
                    tool_calls::record_answer(performed, call.clone(), reply, ended.took, plan);
                    spend(performed.entries.last_mut(), &ended.execution);
                }
                GroupCall::Refused(entry) => outcomes.performed.entries.push(entry),
                // The tokens or the time were used up before its turn; the next decision refuses it.
                GroupCall::Due(..) => break,
            }
        }
        Ok(outcomes)
    }
}

/// The results of a group, and what is counted when they are committed.
#[derive(Default)]
struct Outcomes {
    performed: Performed,
    /// Agents with the outcomes of their runs.
    counted: Vec<(String, &'static str)>,
}

const COMPLETED: &str = "completed";

/// The answer of a sub-agent, or the reason why it has none.
struct Answered {
    content: String,
    outcome: &'static str,
}

impl Answered {
    fn new(record: &ExecutionRecord) -> Self {
        let answer = record.analysis.as_deref().filter(|text| !is_blank(text));
        match (record.status, answer) {
            (RunStatus::Completed, Some(answer)) => Self {
                content: answer.to_owned(),
                outcome: COMPLETED,
            },
            (RunStatus::Completed, None) => Self {
                content: "the agent gave no answer".to_owned(),
                outcome: "empty",
            },
            (RunStatus::TimedOut, _) => Self {
                content: "the agent had no answer when its time was used up".to_owned(),
                outcome: "timed_out",
            },
            (RunStatus::Cancelled, _) => Self {
                content: "the agent was cancelled".to_owned(),
                outcome: "cancelled",
            },
            (
                RunStatus::Failed | RunStatus::Running | RunStatus::Limited | RunStatus::Unknown(_),
                _,
            ) => {
                let error = record.error.as_deref().unwrap_or("no reason is known");
                Self {
                    content: format!("the agent failed: {error}"),
                    outcome: "failed",
                }
            }
        }
    }
}

/// Adds the cost of a sub-agent to its result.
fn spend(result: Option<&mut Entry>, ended: &EndedExecution) {
    if let Some(Entry::ToolResult(result) | Entry::Observation(result)) = result {
        result.spent = Some(ended.spent.clone());
    }
}

/// Reads the journal of a sub-agent and runs it to its end. Boxed, because an execution runs others.
fn run<W: World>(
    ports: Arc<Ports<W>>,
    lease: Lease,
    control: Control,
    assignment: Assignment,
) -> Running {
    Box::pin(async move {
        let began = Instant::now();
        let execution = Execution::resume(ports, lease, control, assignment).await?;
        Ok(Ended {
            execution: execution.run().await?,
            took: began.elapsed(),
        })
    })
}
