//! The answers that models are writing now: the text that deltas have brought so far.
//!
//! Deltas may be lost, arrive twice or come from a worker that lost its lease; a durable event replaces them.

use std::collections::HashMap;

use serde_json::Value;

use crate::ids::ExecutionId;
use crate::timeline::{Delta, DeltaKind, TimelineEvent};

/// More bytes than any terminal has columns; earlier bytes of a stream are dropped.
const MAX_KEPT_BYTES: usize = 2048;

/// The unfinished answers of a session.
#[derive(Debug, Default)]
pub struct Live {
    epoch: u32,
    /// The last model call of each execution whose events are durable.
    durable: HashMap<ExecutionId, ModelCall>,
    /// The agent of each execution that an event or a delta has named.
    agents: HashMap<ExecutionId, String>,
    /// Sorted by the time of the last delta.
    answers: Vec<LiveAnswer>,
}

/// Orders the model calls of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ModelCall {
    iteration: u32,
    attempt: u32,
}

/// The unfinished answer of one execution.
#[derive(Debug)]
pub struct LiveAnswer {
    pub execution: ExecutionId,
    /// The lease epoch of the worker that requested it.
    pub epoch: u32,
    call: ModelCall,
    /// The stream that grew last.
    pub kind: DeltaKind,
    streams: HashMap<DeltaKind, Stream>,
}

/// The end of one stream; `text` begins at byte `base` of the stream.
#[derive(Debug, Default)]
struct Stream {
    base: u64,
    text: String,
}

impl Live {
    /// Adds a delta; returns `false` for an outdated one.
    pub fn delta(&mut self, delta: &Delta) -> bool {
        if let Some(agent) = &delta.agent {
            self.name(delta.execution_id, agent);
        }
        let call = ModelCall {
            iteration: delta.iteration,
            attempt: delta.attempt,
        };
        let is_durable = self
            .durable
            .get(&delta.execution_id)
            .is_some_and(|durable| call <= *durable);
        if delta.epoch < self.epoch || is_durable {
            return false;
        }
        self.enter(delta.epoch);
        let found = self
            .answers
            .iter()
            .position(|answer| answer.execution == delta.execution_id);
        let mut answer = match found.map(|at| self.answers.remove(at)) {
            Some(answer) if call < answer.call => {
                self.answers.push(answer);
                return false;
            }
            Some(answer) if call == answer.call => answer,
            Some(_) | None => LiveAnswer {
                execution: delta.execution_id,
                epoch: delta.epoch,
                call,
                kind: delta.kind,
                streams: HashMap::new(),
            },
        };
        answer.kind = delta.kind;
        answer
            .streams
            .entry(delta.kind)
            .or_default()
            .write(delta.offset, &delta.delta);
        self.answers.push(answer);
        true
    }

    /// The unfinished answers that are requested again with this delta: by another worker, or by another attempt.
    pub fn superseded_by(&self, delta: &Delta) -> impl Iterator<Item = &LiveAnswer> {
        let is_current = delta.epoch >= self.epoch;
        self.answers.iter().filter(move |answer: &&LiveAnswer| {
            let is_earlier =
                answer.call.iteration == delta.iteration && answer.call.attempt < delta.attempt;
            let is_again = answer.execution == delta.execution_id && is_earlier;
            is_current && (answer.epoch < delta.epoch || is_again)
        })
    }

    /// Whether no answer is being written.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The agent of an execution, unless no event and no delta has named it.
    pub fn agent(&self, execution: ExecutionId) -> Option<&str> {
        self.agents.get(&execution).map(String::as_str)
    }

    fn name(&mut self, execution: ExecutionId, agent: &str) {
        self.agents
            .entry(execution)
            .or_insert_with(|| agent.to_owned());
    }

    /// Removes the answer that an event makes durable.
    pub fn event(&mut self, event: &TimelineEvent) {
        if let (Some(execution), Some(agent)) = (event.execution_id, &event.agent) {
            self.name(execution, agent);
        }
        if event.event_type.is_end() {
            self.answers.clear();
        }
        if let Some(epoch) = event.metadata.get("epoch").and_then(Value::as_u64) {
            self.enter(u32::try_from(epoch).unwrap_or(u32::MAX));
        }
        if event.repeats_steps() {
            self.durable.clear();
        }
        if let (Some(execution), Some(iteration)) = (event.execution_id, event.iteration) {
            let call = ModelCall {
                iteration,
                attempt: event.attempt.unwrap_or(u32::MAX),
            };
            let durable = self.durable.entry(execution).or_default();
            *durable = call.max(*durable);
            self.answers
                .retain(|answer| answer.execution != execution || answer.call > call);
        }
    }

    /// The unfinished answers; the one that grew last is the last one.
    pub fn answers(&self) -> &[LiveAnswer] {
        &self.answers
    }

    /// A higher epoch means that another worker owns the session and requests the unfinished answers again.
    fn enter(&mut self, epoch: u32) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.answers.clear();
        }
    }
}

impl LiveAnswer {
    /// The attempt of the iteration's model call, from 1.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// The end of the stream that grew last, at least its last kilobyte; not cleaned.
    pub fn text(&self) -> &str {
        self.streams
            .get(&self.kind)
            .map_or("", |stream| &stream.text)
    }

    /// The bytes of that stream so far.
    pub fn bytes(&self) -> u64 {
        self.streams.get(&self.kind).map_or(0, Stream::end)
    }
}

impl Stream {
    fn end(&self) -> u64 {
        self.base + u64::try_from(self.text.len()).unwrap_or(u64::MAX)
    }

    fn write(&mut self, offset: u64, delta: &str) {
        let keep = offset
            .checked_sub(self.base)
            .and_then(|keep| usize::try_from(keep).ok());
        match keep {
            Some(keep) if keep <= self.text.len() => {
                self.text.truncate(self.text.floor_char_boundary(keep))
            }
            // A delta was lost, or the stream starts again before the kept part: continue with this delta.
            Some(_) | None => {
                *self = Self {
                    base: offset,
                    text: String::new(),
                }
            }
        }
        self.text.push_str(delta);
        if self.text.len() > 2 * MAX_KEPT_BYTES {
            let gone = self
                .text
                .ceil_char_boundary(self.text.len() - MAX_KEPT_BYTES);
            self.text.drain(..gone);
            self.base += u64::try_from(gone).unwrap_or(u64::MAX);
        }
    }
}
