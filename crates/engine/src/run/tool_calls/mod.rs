//! Runs a batch of tool calls: read-only calls at the same time; any other call alone, recorded before it is sent.

mod built_in;

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::control::{Control, Interrupted};
use super::instruments;
use super::performed::{Performed, millis};
use crate::ports::{Journal, Lease, ToolCallRecord, ToolCallState, ToolReply, ToolRequest, Tools};
use crate::trace::gen_ai;
use tarsy_core::built_in::BuiltInTool;
use tarsy_core::execution::entry::{Entry, ToolCall};
use tarsy_core::execution::results::{
    CallError, NOT_FINISHED, ToolOutput, answered, lost, no_time_left, not_finished, not_reached,
    time_used_up, unanswered, unfit,
};
use tarsy_core::execution::state::State;
use tarsy_core::execution::unmasked::Arguments;
use tarsy_core::plan::{AgentPlan, Strategy, ToolSpec};
use tarsy_core::projection::MeasuredTool;
use tarsy_core::read_result;
use tarsy_core::readable::presentation::present;

/// Read-only calls of one answer that run at the same time; a model may ask for any number.
const MAX_CONCURRENT: usize = 16;

/// The label of a call whose tool the plan does not have.
const UNKNOWN_SERVER: &str = "other";

/// The calls of one decision. All of them together have the rest of the iteration.
pub(super) struct Batch<'a, T, J> {
    pub(super) tools: &'a T,
    /// For the built-in tools, which read from the store.
    pub(super) journal: &'a J,
    pub(super) lease: Lease,
    pub(super) control: &'a Control,
    pub(super) state: &'a State,
    pub(super) deadline: Instant,
    /// Read-only calls end here, and no call is sent behind it. The outcome of a call that may change something counts:
    /// it continues.
    pub(super) soft_deadline: Option<Instant>,
}

/// One call and its end.
struct Completed {
    call: ToolCall,
    end: CallEnd,
    duration: Duration,
}

/// The reply of a call, or the reason why it has none.
enum CallEnd {
    Replied(ToolReply),
    /// Not sent, because the time of the iteration was used up.
    NoTime,
    /// Not sent, because the time of the session was used up.
    TimeUsedUp,
    /// Cut off at the soft deadline.
    NotFinished,
}

impl<T: Tools, J: Journal> Batch<'_, T, J> {
    /// Runs the calls. `None`: the run was stopped meanwhile.
    pub(super) async fn run(&self, calls: Vec<ToolCall>) -> Result<Option<Performed>, Interrupted> {
        let running = stream::iter(calls)
            .map(|call| self.perform(call))
            .buffered(MAX_CONCURRENT);
        let bounded = self
            .control
            .within(self.remaining(), running.try_collect::<Vec<_>>());
        let Some(completed) = self.control.unless_stopped(bounded).await? else {
            return Ok(None);
        };
        let mut performed = Performed::default();
        for completed in completed? {
            record(&mut performed, completed, self.state.plan());
        }
        Ok(Some(performed))
    }

    /// Checks the lease and the time before each request, because the checkpoint before it, earlier calls or an
    /// unavailable server may have taken long.
    async fn perform(&self, call: ToolCall) -> Result<Completed, Interrupted> {
        self.control.owned()?;
        let began = Instant::now();
        let allowed = self.remaining();
        let unsent = if self.is_behind_soft_deadline() {
            Some(CallEnd::TimeUsedUp)
        } else {
            allowed.is_zero().then_some(CallEnd::NoTime)
        };
        if let Some(end) = unsent {
            return Ok(Completed {
                call,
                end,
                duration: Duration::ZERO,
            });
        }
        let sent = match self.state.arguments(&call.id) {
            Arguments::Original(arguments) => ToolCall {
                arguments: arguments.to_owned(),
                ..call.clone()
            },
            Arguments::Stored | Arguments::Unknown => call.clone(),
        };
        let spec = self.state.plan().tool(&call.tool);
        let span = gen_ai::execute_tool(&call, spec);
        if let Some(tool) = BuiltInTool::named(&call.tool) {
            let reply = self
                .built_in(tool, &sent.arguments)
                .instrument(span.clone())
                .await?;
            gen_ai::replied(&span, &reply);
            return Ok(Completed {
                call,
                end: CallEnd::Replied(reply),
                duration: began.elapsed(),
            });
        }
        let bounded = async || {
            let remaining = self.remaining();
            let request = ToolRequest::new(&sent, remaining)
                .with_spec(spec)
                .under(self.lease);
            let reply = tokio::time::timeout(remaining, self.tools.call(request)).await;
            reply.unwrap_or_else(|_| {
                let error = format!("no answer within {} s", allowed.as_secs_f64());
                ToolReply::NoAnswer {
                    error,
                    timeout: true,
                }
            })
        };
        let sending = async {
            let reply = bounded().instrument(span.clone()).await;
            if may_send_again(&call, &reply)
                && self.control.owned().is_ok()
                && !self.remaining().is_zero()
                && !self.is_behind_soft_deadline()
            {
                return bounded().instrument(span.clone()).await;
            }
            reply
        };
        let end = match self.soft_deadline {
            Some(soft) if call.read_only => match tokio::time::timeout_at(soft, sending).await {
                Ok(reply) => CallEnd::Replied(reply),
                Err(_elapsed) => CallEnd::NotFinished,
            },
            Some(_) | None => CallEnd::Replied(sending.await),
        };
        if let CallEnd::Replied(reply) = &end {
            gen_ai::replied(&span, reply);
        }
        let duration = began.elapsed();
        instruments::tool_took(spec.map_or(UNKNOWN_SERVER, ToolSpec::server), duration);
        Ok(Completed {
            call,
            end,
            duration,
        })
    }

    fn is_behind_soft_deadline(&self) -> bool {
        self.soft_deadline
            .is_some_and(|soft| Instant::now() >= soft)
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Whether the call is sent a second time: after a missing or broken connection, unless it may have changed something.
fn may_send_again(call: &ToolCall, reply: &ToolReply) -> bool {
    match reply {
        ToolReply::Answered { .. }
        | ToolReply::Refused { .. }
        | ToolReply::NoAnswer { timeout: true, .. } => false,
        ToolReply::NotSent { .. } => true,
        ToolReply::NoAnswer { timeout: false, .. } => call.read_only,
    }
}

fn record(performed: &mut Performed, completed: Completed, plan: &AgentPlan) {
    let Completed {
        call,
        end,
        duration,
    } = completed;
    let Recorded {
        entries,
        state,
        result,
        error,
        bytes,
        cut_to_tokens,
    } = match end {
        CallEnd::Replied(reply) => recorded(plan, &call, reply),
        CallEnd::NotFinished => not_finished_call(plan.strategy, &call),
        CallEnd::NoTime => {
            not_run("no_time");
            performed.entries.extend(no_time_left(plan.strategy, &call));
            return;
        }
        CallEnd::TimeUsedUp => {
            not_run("time_budget");
            performed.entries.push(time_used_up(plan.strategy, &call));
            return;
        }
    };
    instruments::tool_call(
        plan.tool(&call.tool)
            .map_or(UNKNOWN_SERVER, ToolSpec::server),
        state,
    );
    let measured = MeasuredTool {
        took_ms: millis(duration),
        bytes,
        cut_to_tokens,
    };
    performed.measured.tools.insert(call.id.clone(), measured);
    performed.entries.extend(entries);
    performed.tool_calls.push(ToolCallRecord {
        call,
        state,
        result,
        error,
        duration,
    });
}

/// Records the answer to a call that no server was asked for.
pub(super) fn record_answer(
    performed: &mut Performed,
    call: ToolCall,
    answer: ToolReply,
    duration: Duration,
    plan: &AgentPlan,
) {
    let end = CallEnd::Replied(answer);
    record(
        performed,
        Completed {
            call,
            end,
            duration,
        },
        plan,
    );
}

pub(super) fn not_run(reason: &'static str) {
    metrics::counter!("tarsy_tool_calls_not_run_total", "reason" => reason).increment(1);
}

/// A read-only call that the end of the time has cut off: no failure of its tool.
fn not_finished_call(strategy: Strategy, call: &ToolCall) -> Recorded {
    Recorded {
        entries: vec![not_finished(strategy, call)],
        state: ToolCallState::Failed,
        result: None,
        error: Some(NOT_FINISHED.to_owned()),
        bytes: 0,
        cut_to_tokens: None,
    }
}

/// The parts of a reply that are stored in the journal and in the record of its call.
struct Recorded {
    entries: Vec<Entry>,
    state: ToolCallState,
    /// The whole result.
    result: Option<String>,
    error: Option<String>,
    /// The size of the whole result.
    bytes: u64,
    /// The limit to which the model's result was cut.
    cut_to_tokens: Option<u32>,
}

fn recorded(plan: &AgentPlan, call: &ToolCall, reply: ToolReply) -> Recorded {
    let strategy = plan.strategy;
    let without_result = |state, entries, error| Recorded {
        entries,
        state,
        result: None,
        error: Some(error),
        bytes: 0,
        cut_to_tokens: None,
    };
    match reply {
        ToolReply::Answered { content, is_error } => {
            let limit = plan.limits.max_tool_result_tokens;
            let read_back = read_result::read_back(plan);
            let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
            let presentation = plan.presentation.for_tool(&call.tool);
            let presented = if is_error {
                present(&content, presentation.of_error(), read_back)
            } else {
                present(&content, presentation, read_back)
            };
            let presented = presented.cut(limit, read_back);
            let output = ToolOutput {
                whole_bytes: if presented.is_part { bytes } else { 0 },
                is_error,
                content: presented.text,
                facts: presented.facts,
            };
            Recorded {
                entries: vec![answered(strategy, call, output)],
                state: if is_error {
                    ToolCallState::Failed
                } else {
                    ToolCallState::Done
                },
                result: Some(content),
                error: None,
                bytes,
                cut_to_tokens: presented.is_cut.then_some(limit),
            }
        }
        ToolReply::Refused { faults } => Recorded {
            entries: vec![unfit(strategy, call, faults.clone())],
            state: ToolCallState::Failed,
            bytes: u64::try_from(faults.len()).unwrap_or(u64::MAX),
            result: Some(faults),
            error: None,
            cut_to_tokens: None,
        },
        ToolReply::NotSent { error } => {
            let entries = not_reached(
                strategy,
                call,
                CallError {
                    message: &error,
                    timeout: false,
                },
            );
            without_result(ToolCallState::Failed, entries, error)
        }
        ToolReply::NoAnswer { error, timeout } if call.read_only => {
            let entries = unanswered(
                strategy,
                call,
                CallError {
                    message: &error,
                    timeout,
                },
            );
            without_result(ToolCallState::Failed, entries, error)
        }
        ToolReply::NoAnswer { error, .. } => {
            without_result(ToolCallState::Lost, lost(strategy, call), error)
        }
    }
}
