//! The part of people in open calls: which of them wait, and what has ended without a result so far.

use super::{OpenCall, State};
use crate::execution::decide::Asked;
use crate::execution::entry::{Answer, ApprovalEnded, ApprovalOutcome, ToolCall};
use crate::execution::unmasked::Arguments;

/// A wait that is longer is stated to the model.
const SHORT_WAIT_SECS: u64 = 600;

/// The part of people in an open call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// No person decides about it.
    #[default]
    NotNeeded,
    /// A person has to be asked before it is sent.
    Needed,
    /// A request waits, or was approved.
    Asked {
        /// The number of the event that names the request; 0 in a journal without numbers.
        event: u32,
    },
    /// It is not sent. Its result follows when the calls before it have theirs.
    Refused(Box<ApprovalEnded>),
}

/// A wait that the model has to know of, or the words of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndedWait {
    /// The full name of the tool.
    pub(crate) tool: String,
    pub(crate) ended: ApprovalEnded,
}

/// The requests of an execution that have ended, as far as later steps depend on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndedRequests {
    /// Those that the model is to know of before its next answer.
    untold: Vec<EndedWait>,
    /// Those that deny every later call of their tools.
    denying: Vec<EndedWait>,
}

impl State {
    /// Whether a person decides about the calls of this tool.
    pub(crate) fn needs_person(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|spec| spec.approval.is_some())
    }

    /// The open requests of this execution, in the order of their calls.
    pub fn asked_calls(&self) -> Vec<Asked> {
        let asked = self.open.iter().filter_map(OpenCall::asked);
        asked.collect()
    }

    /// The event of the request of an open call that waits for a person.
    pub fn request_of(&self, call_id: &str) -> Option<u32> {
        let open = self.open.iter().find(|open| open.call.id == call_id)?;
        open.asked().map(|asked| asked.event)
    }

    /// The call of the last answer with this id, if it has no result.
    pub fn open_call(&self, call_id: &str) -> Option<&ToolCall> {
        let open = self.open.iter().find(|open| open.call.id == call_id)?;
        Some(&open.call)
    }

    /// Whether the journal has the arguments of a call masked.
    pub(crate) fn is_masked(&self, call_id: &str) -> bool {
        self.arguments(call_id) != Arguments::Stored
    }

    /// The end of the request in which a person has denied every call of this tool.
    pub(crate) fn denied_for_session(&self, tool: &str) -> Option<&ApprovalEnded> {
        let mut denying = self.ended_requests.denying.iter();
        denying
            .find(|denied| denied.tool == tool)
            .map(|denied| &denied.ended)
    }

    /// The waits that the model is to know of before its next answer.
    pub(crate) fn untold_waits(&self) -> &[EndedWait] {
        &self.ended_requests.untold
    }

    /// The newest answer of the model, whose calls may be open.
    pub(crate) fn last_answer(&self) -> Option<&Answer> {
        self.entries.iter().rev().find_map(|entry| entry.answer())
    }

    pub(super) fn approval_of(&self, call: &ToolCall) -> Approval {
        if self.needs_person(&call.tool) {
            Approval::Needed
        } else {
            Approval::NotNeeded
        }
    }

    pub(super) fn add_request(&mut self, call_id: &str, event: Option<u32>) {
        let event = event.unwrap_or_default();
        for open in self.open.iter_mut().filter(|open| open.call.id == call_id) {
            open.approval = Approval::Asked { event };
        }
    }

    /// The end of a request. An approval changes nothing: the start of the call follows in the same checkpoint.
    pub(super) fn end_request(&mut self, ended: &ApprovalEnded) {
        let Some(open) = self
            .open
            .iter_mut()
            .find(|open| open.call.id == ended.call_id)
        else {
            return;
        };
        let wait = EndedWait {
            tool: open.call.tool.clone(),
            ended: ended.clone(),
        };
        let has_request = matches!(open.approval, Approval::Asked { .. });
        if ended.outcome != ApprovalOutcome::Approved {
            open.approval = Approval::Refused(Box::new(ended.clone()));
        }
        if ended.outcome == ApprovalOutcome::DeniedSession
            && self.denied_for_session(&wait.tool).is_none()
        {
            self.ended_requests.denying.push(wait.clone());
        }
        // A call that was answered without a request has the words of an earlier one.
        let is_long = ended.waited_secs > SHORT_WAIT_SECS;
        if has_request && (is_long || ended.comment.is_some()) {
            self.ended_requests.untold.push(wait);
        }
    }

    /// The model knows of every wait.
    pub(super) fn tell_waits(&mut self) {
        self.ended_requests.untold.clear();
    }
}

impl OpenCall {
    /// Its request, if it waits for a person.
    fn asked(&self) -> Option<Asked> {
        match &self.approval {
            Approval::Asked { event } if !self.started => Some(Asked {
                call_id: self.call.id.clone(),
                event: *event,
            }),
            Approval::Asked { .. }
            | Approval::NotNeeded
            | Approval::Needed
            | Approval::Refused(_) => None,
        }
    }
}
