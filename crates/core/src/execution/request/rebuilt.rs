//! A stored model call: the state at its time, the rebuilt request, and its outcome.
//!
//! Nothing of a request is stored with its call. The journal up to `entries_upto`, the frozen plan and, for a summary,
//! the stored result are all that it was made from.

use std::sync::Arc;

use super::{RequestBody, of_step, of_summary};
use crate::execution::decide::{Purpose, model_call};
use crate::execution::entry::{Answer, Entry, Summary};
use crate::execution::event_refs::RecordedEntry;
use crate::execution::state::{MessageSource, State};
use crate::execution::summaries::LongResult;
use crate::plan::AgentPlan;

/// The number of a model call in an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredCall {
    pub purpose: Purpose,
    /// The number of the last entry in the request.
    pub entries_upto: u32,
    /// The number of the call among those of its checkpoint, from 1.
    pub call_no: u32,
}

/// The execution at the moment of a stored call.
#[derive(Clone, Debug)]
pub struct CallSite {
    purpose: Purpose,
    state: State,
    /// The entry that was committed with the call.
    outcome: Option<Entry>,
    /// The result that a summary was asked for.
    long: Option<LongResult>,
}

/// The reason why a request cannot be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRebuilt {
    #[error("the journal has {has} entries, and the request was made from {of}")]
    Journal { has: usize, of: usize },
    #[error("the plan does not have the provider of the call")]
    Provider,
    #[error("the journal has no summary that belongs to the call")]
    Summary,
    #[error("the result of event {event} is not stored")]
    Result { event: u32 },
}

impl CallSite {
    /// Replays the journal of the execution up to the call.
    ///
    /// # Errors
    /// When the journal is shorter than at the time of the call, or has no summary of it.
    pub fn find(
        plan: Arc<AgentPlan>,
        mut journal: Vec<RecordedEntry>,
        call: StoredCall,
    ) -> Result<Self, NotRebuilt> {
        let of = usize::try_from(call.entries_upto).unwrap_or(usize::MAX);
        if journal.len() < of {
            return Err(NotRebuilt::Journal {
                has: journal.len(),
                of,
            });
        }
        let mut after = journal
            .split_off(of)
            .into_iter()
            .map(|recorded| recorded.entry);
        // The opening prompt has the findings of earlier stages.
        let state = State::replay(plan, None, journal);
        if call.purpose != Purpose::Summary {
            return Ok(Self {
                purpose: call.purpose,
                state,
                outcome: after.next(),
                long: None,
            });
        }
        let summaries = after.map_while(|entry| {
            if let Entry::Summarised(summary) = entry {
                Some(summary)
            } else {
                None
            }
        });
        let before = usize::try_from(call.call_no.saturating_sub(1)).unwrap_or(usize::MAX);
        let summary = summaries
            .filter(Summary::was_asked_for)
            .nth(before)
            .ok_or(NotRebuilt::Summary)?;
        let long = state
            .long_results()
            .iter()
            .find(|long| long.call_id == summary.call_id)
            .cloned()
            .ok_or(NotRebuilt::Summary)?;
        Ok(Self {
            purpose: call.purpose,
            state,
            outcome: Some(Entry::Summarised(summary)),
            long: Some(long),
        })
    }

    /// The event whose stored result is a part of the request; `None` for a request that needs only the journal.
    pub fn result_event(&self) -> Option<u32> {
        self.long.as_ref().map(|long| long.event)
    }

    /// The request. `result` is the whole stored result of [`Self::result_event`].
    ///
    /// # Errors
    /// When the result is needed and missing, or the plan lacks the provider.
    pub fn request(&self, result: Option<&str>) -> Result<RequestBody, NotRebuilt> {
        let request = match &self.long {
            None => of_step(&self.state, model_call(&self.state, self.purpose)),
            Some(long) => of_summary(
                &self.state,
                long,
                result.ok_or(NotRebuilt::Result { event: long.event })?,
            ),
        };
        request.ok_or(NotRebuilt::Provider)
    }

    /// The entries that the messages of the request were made from; empty for a summary, which has none.
    pub fn sources(&self) -> Vec<MessageSource> {
        if self.long.is_some() {
            Vec::new()
        } else {
            self.state.message_sources()
        }
    }

    /// The answer; `None` for a call without one, and for a summary.
    pub fn answer(&self) -> Option<&Answer> {
        self.outcome.as_ref().and_then(Entry::answer)
    }

    /// The summary that was made.
    pub fn summary(&self) -> Option<&Summary> {
        if let Some(Entry::Summarised(summary)) = &self.outcome {
            Some(summary)
        } else {
            None
        }
    }
}
