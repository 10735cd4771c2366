//! Runs one batch of tool calls: read-only ones at the same time, any other alone and written down before it is sent.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use super::control::{Control, Interrupted};
use super::execution::{Execution, Performed, millis};
use crate::engine::ports::{ToolCallRecord, ToolCallState, ToolReply, Tools};
use crate::engine::world::World;
use crate::investigation::execution::entry::{Entry, ToolCall};
use crate::investigation::execution::results::{CallError, ToolOutput, answered, lost, no_time_left, unanswered};
use crate::investigation::execution::state::State;
use crate::investigation::execution::unmasked::Arguments;
use crate::investigation::plan::Strategy;
use crate::investigation::timeline::projection::MeasuredTool;

/// Read-only calls of one answer that run at the same time; a model may ask for any number.
const AT_ONCE: usize = 16;

/// One call and what became of it.
struct Ran {
    call: ToolCall,
    /// `None`: it was not sent, because no time was left.
    reply: Option<ToolReply>,
    took: Duration,
}

/// Runs the calls of one decision and commits their results. All of them together have what is left of the iteration.
pub(super) async fn run<W: World>(execution: &mut Execution<W>, calls: Vec<ToolCall>) -> Result<(), Interrupted> {
    execution.control.permit()?;
    let deadline = Instant::now() + execution.iteration_remaining();
    if let [call] = calls.as_slice()
        && !call.read_only
        && Instant::now() < deadline
    {
        execution.append(vec![Entry::Started { call_id: call.id.clone() }]).await?;
    }
    let limit = execution.state.plan().limits.max_tool_result_tokens;
    let (tools, control, state) = (&*execution.ports.tools, &execution.control, &execution.state);
    let running = stream::iter(calls).map(|call| one((tools, control, state), call, limit, deadline)).buffered(AT_ONCE);
    let ran = tokio::select! {
        // In this order: nothing is sent by a run that is stopped already.
        biased;
        () = control.lost() => return Err(Interrupted::LeaseLost),
        () = control.stopped() => return Ok(()),
        ran = control.within(left_until(deadline), running.try_collect::<Vec<_>>()) => ran?,
    };
    let strategy = execution.state.plan().strategy;
    let mut performed = Performed::default();
    for ran in ran {
        record(&mut performed, ran, (strategy, limit));
    }
    execution.commit(performed).await
}

fn left_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// The lease is looked at each time before it is sent: the write of its start, calls before it or a server that could not
/// be reached may have taken long. So may the time be over.
async fn one<T: Tools>(
    (tools, control, state): (&T, &Control, &State),
    call: ToolCall,
    limit: u32,
    deadline: Instant,
) -> Result<Ran, Interrupted> {
    control.owned()?;
    let (began, whole) = (Instant::now(), left_until(deadline));
    if whole.is_zero() {
        return Ok(Ran { call, reply: None, took: Duration::ZERO });
    }
    let sent = match state.arguments(&call.id) {
        Arguments::Original(arguments) => ToolCall { arguments: arguments.to_owned(), ..call.clone() },
        Arguments::Stored | Arguments::Unknown => call.clone(),
    };
    let bounded = async || {
        let left = left_until(deadline);
        let reply = tokio::time::timeout(left, tools.call(&sent, limit, left)).await;
        reply.unwrap_or_else(|_| {
            let error = format!("no answer within {} s", whole.as_secs_f64());
            ToolReply::NoAnswer { error, timeout: true }
        })
    };
    let mut reply = bounded().await;
    if may_send_again(&call, &reply) && control.owned().is_ok() && !left_until(deadline).is_zero() {
        reply = bounded().await;
    }
    let took = began.elapsed();
    metrics::histogram!("tarsy_tool_call_duration_seconds").record(took.as_secs_f64());
    Ok(Ran { call, reply: Some(reply), took })
}

/// Once more after a connection that was not there or broke; never for a call that may have changed something.
fn may_send_again(call: &ToolCall, reply: &ToolReply) -> bool {
    match reply {
        ToolReply::Answered { .. } | ToolReply::NoAnswer { timeout: true, .. } => false,
        ToolReply::NotSent { .. } => true,
        ToolReply::NoAnswer { timeout: false, .. } => call.read_only,
    }
}

fn record(performed: &mut Performed, ran: Ran, (strategy, limit): (Strategy, u32)) {
    let Ran { call, reply, took } = ran;
    let Some(reply) = reply else {
        metrics::counter!("tarsy_tool_calls_not_run_total", "reason" => "no_time").increment(1);
        performed.entries.extend(no_time_left(strategy, &call));
        return;
    };
    let (entries, state, result, error, bytes, cut) = match reply {
        ToolReply::Answered { content, full, bytes, is_error } => {
            let cut = full.is_some().then_some(limit);
            let whole = full.unwrap_or_else(|| content.clone());
            let state = if is_error { ToolCallState::Failed } else { ToolCallState::Done };
            (vec![answered(strategy, &call, ToolOutput { content, is_error })], state, Some(whole), None, bytes, cut)
        }
        ToolReply::NotSent { error } => {
            let entries = unanswered(strategy, &call, CallError { message: &error, timeout: false });
            (entries, ToolCallState::Failed, None, Some(error), 0, None)
        }
        ToolReply::NoAnswer { error, timeout } if call.read_only => {
            let entries = unanswered(strategy, &call, CallError { message: &error, timeout });
            (entries, ToolCallState::Failed, None, Some(error), 0, None)
        }
        ToolReply::NoAnswer { error, .. } => (lost(strategy, &call), ToolCallState::Lost, None, Some(error), 0, None),
    };
    metrics::counter!("tarsy_tool_calls_total", "outcome" => state.as_str()).increment(1);
    let measured = MeasuredTool { took_ms: millis(took), bytes, cut_to_tokens: cut };
    performed.measured.tools.insert(call.id.clone(), measured);
    performed.entries.extend(entries);
    performed.tool_calls.push(ToolCallRecord { call, state, result, error, duration: took });
}
