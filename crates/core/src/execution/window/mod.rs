//! The model's context window: estimates the size of the next request and blanks old tool results when it is too large.
//!
//! The estimate is a fold of its own: every entry changes a few numbers, so its cost does not depend on the length of
//! the journal. Many results are blanked at once, because each change of the conversation invalidates the provider's
//! cache.

use std::collections::VecDeque;

use super::blanked::{Blanked, Origin};
use super::conversation::{self, RenderOptions, ResultBody};
use super::entry::{Entry, FailureSource, Finish, LoadedSkills};
use crate::plan::AgentPlan;
use crate::vocabulary::ErrorCode;

/// Assumed tokens of a context window whose size is not configured.
const DEFAULT_WINDOW: u64 = 128_000;
/// 1/8 of the window is reserved for the answer and for the error of the estimate.
const RESERVE_DIVISOR: u64 = 8;
/// Results are blanked until the request has at most 1/2 of the budget.
pub(super) const TARGET_DIVISOR: u64 = 2;
/// A measured rate outside of these bounds is clamped: the provider counted more than the text, or less.
const MIN_RATE: Rate = Rate {
    tokens: 1,
    bytes: 8,
};
const MAX_RATE: Rate = Rate {
    tokens: 1,
    bytes: 1,
};

/// Whether a request includes the tool definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolBinding {
    Bound,
    /// It includes them, and the model may call none.
    Declared,
    Unbound,
}

/// The results that may be blanked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elidable {
    /// Only results that the model has answered: the results of the calls in its last answer stay.
    BeforeLastAnswer,
    All,
}

/// Tokens per bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate {
    tokens: u64,
    bytes: u64,
}

impl Default for Rate {
    /// The rate before the first measurement: logs and JSON have about 3.3 bytes per token.
    fn default() -> Self {
        Self {
            tokens: 10,
            bytes: 33,
        }
    }
}

impl Rate {
    fn is_above(self, other: Self) -> bool {
        u128::from(self.tokens) * u128::from(other.bytes)
            > u128::from(other.tokens) * u128::from(self.bytes)
    }

    fn clamped(self) -> Self {
        if self.is_above(MAX_RATE) {
            MAX_RATE
        } else if MIN_RATE.is_above(self) {
            MIN_RATE
        } else {
            self
        }
    }

    fn tokens_of(self, bytes: u64) -> u64 {
        let tokens =
            (u128::from(bytes) * u128::from(self.tokens)).div_ceil(u128::from(self.bytes.max(1)));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

/// A result that is not blanked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    /// Number of its entry, from 1.
    number: u32,
    bytes: u64,
    blanked_bytes: u64,
    /// Texts of skills are blanked last.
    origin: Origin,
}

/// The estimated use of the context window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Size of the tool definitions.
    tools_bytes: u64,
    /// Size of the conversation as it would be sent now.
    bytes: u64,
    entries: u32,
    results: VecDeque<Kept>,
    blanked: Blanked,
    /// Number of the last answer's entry.
    last_answer: u32,
    /// The part of `bytes` that only the current provider is sent: its own form of its answers.
    own_form_bytes: u64,
    rate: Rate,
    /// The smallest request that the provider refused, in tokens, as estimated at that time.
    refused_tokens: Option<u64>,
    /// Number of refused requests since the last answer.
    pub(super) refusals: u32,
    /// The last refused request still has to be made smaller.
    owes_room: bool,
}

impl Window {
    /// The window before the first entry.
    pub(super) fn new(plan: &AgentPlan) -> Self {
        let tools = plan
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters_schema.len());
        Self {
            tools_bytes: u64::try_from(tools.sum::<usize>()).unwrap_or(u64::MAX),
            ..Self::default()
        }
    }

    /// Applies one entry; `tools` is the binding of the request that it answers.
    pub(super) fn apply(&mut self, entry: &Entry, options: RenderOptions, tools: ToolBinding) {
        self.entries += 1;
        match entry {
            Entry::Answer(answer) => {
                let sent = self.request_bytes(tools);
                if answer.usage.input_tokens > 0 && sent > 0 {
                    self.rate = Rate {
                        tokens: answer.usage.input_tokens,
                        bytes: sent,
                    }
                    .clamped();
                }
                // An answer that fills the window is as good as a refusal: the next request has to be shorter.
                let is_full = answer.finish == Finish::ContextWindow;
                (self.refusals, self.owes_room, self.last_answer) =
                    (u32::from(is_full), is_full, self.entries);
            }
            Entry::Failed {
                source: FailureSource::Model,
                code,
                ..
            } if ErrorCode::parse(code) == ErrorCode::ContextWindowExceeded => {
                let tokens = self.estimate(tools);
                self.refused_tokens = Some(
                    self.refused_tokens
                        .map_or(tokens, |least| least.min(tokens)),
                );
                self.refusals += 1;
                self.owes_room = true;
            }
            Entry::ToolResult(_) | Entry::Observation(_)
                if !self.blanked.covers(self.entries, entry) =>
            {
                self.results.push_back(Kept {
                    number: self.entries,
                    bytes: conversation::bytes(entry, options, ResultBody::Full),
                    blanked_bytes: conversation::bytes(entry, options, ResultBody::Elided),
                    origin: Origin::of_entry(entry),
                });
            }
            Entry::Elided { up_to, skills } => self.blank(*up_to, *skills),
            Entry::Switched { .. } => self.switch(),
            Entry::Concluding { .. } => self.owes_room = false,
            Entry::Prompt { .. }
            | Entry::ToolResult(_)
            | Entry::Observation(_)
            | Entry::Feedback { .. }
            | Entry::AlertUpdated(_)
            | Entry::Failed { .. }
            | Entry::Started { .. }
            | Entry::Lost { .. }
            | Entry::SentBefore { .. }
            | Entry::Dispatched(_)
            | Entry::ApprovalRequested(_)
            | Entry::ApprovalEnded(_)
            | Entry::AfterWait { .. }
            | Entry::Summarised(_)
            | Entry::Stopped { .. }
            | Entry::Ended { .. } => {}
        }
        let body = if self.blanked.covers(self.entries, entry) {
            ResultBody::Elided
        } else {
            ResultBody::Full
        };
        self.bytes += conversation::bytes(entry, options, body);
        self.own_form_bytes += conversation::own_form_bytes(entry, options);
    }

    /// Another model counts tokens in its own way and has its own window. It gets earlier answers as text.
    fn switch(&mut self) {
        self.bytes = self
            .bytes
            .saturating_sub(std::mem::take(&mut self.own_form_bytes));
        (self.rate, self.refused_tokens) = (Rate::default(), None);
        (self.refusals, self.owes_room) = (0, false);
    }

    /// A shorter text takes the place of the result with this entry number.
    pub(super) fn replace(&mut self, number: u32, entry: &Entry, options: RenderOptions) {
        if let Some(result) = self
            .results
            .iter_mut()
            .find(|result| result.number == number)
        {
            let bytes = conversation::bytes(entry, options, ResultBody::Full);
            self.bytes = (self.bytes + bytes).saturating_sub(result.bytes);
            result.bytes = bytes;
        }
    }

    fn blank(&mut self, up_to: u32, skills: LoadedSkills) {
        self.owes_room = false;
        self.blanked.add(up_to, skills);
        let blanked = self.blanked;
        let is_gone = |result: &Kept| blanked.covers_result(result.number, result.origin);
        for result in self.results.iter().filter(|result| is_gone(result)) {
            self.bytes = (self.bytes + result.blanked_bytes).saturating_sub(result.bytes);
        }
        self.results.retain(|result| !is_gone(result));
    }

    /// The results that are blanked.
    pub fn blanked(&self) -> Blanked {
        self.blanked
    }

    /// Estimated tokens of the next request.
    pub(crate) fn estimate(&self, tools: ToolBinding) -> u64 {
        self.rate.tokens_of(self.request_bytes(tools))
    }

    fn request_bytes(&self, tools: ToolBinding) -> u64 {
        match tools {
            ToolBinding::Bound | ToolBinding::Declared => self.bytes + self.tools_bytes,
            ToolBinding::Unbound => self.bytes,
        }
    }

    /// The largest request, in tokens, for a model with this context window; 0 means that the window is unknown. A
    /// refused request proves that the window is smaller than the request.
    pub fn budget(&self, context_window: u64) -> u64 {
        let configured = if context_window == 0 {
            DEFAULT_WINDOW
        } else {
            context_window
        };
        let window = self
            .refused_tokens
            .map_or(configured, |refused| refused.min(configured));
        window - window / RESERVE_DIVISOR
    }

    /// Whether the last refused request still has to be made smaller.
    pub(super) fn owes_room(&self) -> bool {
        self.owes_room
    }

    /// Whether the provider has refused a request since the last answer.
    pub(super) fn was_refused(&self) -> bool {
        self.refusals > 0
    }

    /// The facts that blank results so that at most `target` tokens are left, or as few as possible; none if blanking
    /// frees nothing. Texts of skills stay as long as the other results free enough.
    pub(super) fn to_blank(
        &self,
        target: u64,
        tools: ToolBinding,
        elidable: Elidable,
    ) -> Vec<Entry> {
        let before = self.request_bytes(tools);
        let end = match elidable {
            Elidable::All => u32::MAX,
            Elidable::BeforeLastAnswer => self.last_answer,
        };
        let mut freed = Freed {
            before,
            bytes: before,
            target,
            up_to: None,
        };
        let mut facts = Vec::new();
        let results = || self.results.iter().take_while(|result| result.number < end);
        self.free(
            &mut freed,
            results().filter(|result| result.origin == Origin::Others),
        );
        let skills = if results().any(|result| result.origin == Origin::Skills) {
            LoadedSkills::Kept
        } else {
            LoadedSkills::Blanked
        };
        facts.extend(
            freed
                .up_to
                .take()
                .map(|up_to| Entry::Elided { up_to, skills }),
        );
        self.free(
            &mut freed,
            results().filter(|result| result.origin == Origin::Skills),
        );
        facts.extend(freed.up_to.map(Entry::elided));
        if freed.bytes < before {
            facts
        } else {
            Vec::new()
        }
    }

    /// Blanks results in their order until the request is small enough.
    fn free<'k>(&self, freed: &mut Freed, results: impl Iterator<Item = &'k Kept>) {
        for result in results {
            if self.rate.tokens_of(freed.bytes) <= freed.target && freed.bytes < freed.before {
                break;
            }
            freed.bytes = (freed.bytes + result.blanked_bytes).saturating_sub(result.bytes);
            freed.up_to = Some(result.number);
        }
    }
}

/// The size of the request while results are chosen for blanking.
struct Freed {
    before: u64,
    bytes: u64,
    target: u64,
    /// The last one that is chosen.
    up_to: Option<u32>,
}

#[cfg(test)]
mod tests;
