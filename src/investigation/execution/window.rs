//! The model's context window: how full the next request would be, and what makes room.
//!
//! A fold of its own beside the state's: every entry changes a few numbers, so asking costs nothing however long the
//! journal is. Room is made in one large step, because each step costs the provider's cache.

use std::collections::VecDeque;

use super::conversation::{self, RenderOptions, ResultBody};
use super::entry::{Entry, FailureSource, StopReason};
use super::state::State;
use crate::investigation::plan::AgentPlan;

/// The service's word for a request that the model has no room for.
pub const EXCEEDED: &str = "context_window_exceeded";

/// Tokens of a window that nobody has told.
const DEFAULT_WINDOW: u64 = 128_000;
/// One part in so many of a window is left for the answer and for the error of the estimate.
const RESERVE: u64 = 8;
/// Room is made down to one part in so many of the budget.
const STEP: u64 = 2;
/// Before anything was measured: logs and JSON run at 3.3 bytes a token.
const ASSUMED: Rate = Rate { tokens: 10, bytes: 33 };
/// What is measured outside of these counts something else than the text.
const MIN_RATE: Rate = Rate { tokens: 1, bytes: 8 };
const MAX_RATE: Rate = Rate { tokens: 1, bytes: 1 };

/// Whether a request includes the tool definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolBinding {
    Bound,
    Unbound,
}

/// The results that may be blanked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elidable {
    /// Only results that the model has answered: those of its last answer's calls stay.
    BeforeLastAnswer,
    All,
}

/// How many tokens so many bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate {
    tokens: u64,
    bytes: u64,
}

impl Rate {
    fn is_above(self, other: Self) -> bool {
        u128::from(self.tokens) * u128::from(other.bytes) > u128::from(other.tokens) * u128::from(self.bytes)
    }

    fn credible(self) -> Self {
        if self.is_above(MAX_RATE) {
            MAX_RATE
        } else if MIN_RATE.is_above(self) {
            MIN_RATE
        } else {
            self
        }
    }

    fn tokens_of(self, bytes: u64) -> u64 {
        let tokens = (u128::from(bytes) * u128::from(self.tokens)).div_ceil(u128::from(self.bytes.max(1)));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

/// A result that is still shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    /// Number of its entry, from 1.
    number: u32,
    bytes: u64,
    blanked_bytes: u64,
}

/// How full the window is, as far as the journal tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Of the tools, where they are bound.
    tools_bytes: u64,
    /// Of the conversation as it is sent now.
    bytes: u64,
    entries: u32,
    results: VecDeque<Kept>,
    elided: u32,
    /// Number of the last answer's entry.
    last_answer: u32,
    rate: Rate,
    /// The smallest request that was refused, in tokens by the estimate of then.
    refused_tokens: Option<u64>,
    /// Refusals since the last answer.
    refusals: u32,
    /// The last refusal has had no consequence yet.
    owes_room: bool,
}

impl Window {
    /// Of a conversation that has not begun.
    pub(super) fn new(plan: &AgentPlan) -> Self {
        let tools =
            plan.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.parameters_schema.len());
        Self {
            tools_bytes: u64::try_from(tools.sum::<usize>()).unwrap_or(u64::MAX),
            bytes: 0,
            entries: 0,
            results: VecDeque::new(),
            elided: 0,
            last_answer: 0,
            rate: ASSUMED,
            refused_tokens: None,
            refusals: 0,
            owes_room: false,
        }
    }

    /// Takes one entry in. `with_tools` says whether tools went with the request that it answers.
    pub(super) fn apply(&mut self, entry: &Entry, options: RenderOptions, tools: ToolBinding) {
        self.entries += 1;
        match entry {
            Entry::Answer(answer) => {
                let sent = self.request_bytes(tools);
                if answer.usage.input_tokens > 0 && sent > 0 {
                    self.rate = Rate { tokens: answer.usage.input_tokens, bytes: sent }.credible();
                }
                (self.refusals, self.owes_room, self.last_answer) = (0, false, self.entries);
            }
            Entry::Failed { source: FailureSource::Model, code, .. } if code == EXCEEDED => {
                let tokens = self.estimate(tools);
                self.refused_tokens = Some(self.refused_tokens.map_or(tokens, |least| least.min(tokens)));
                self.refusals += 1;
                self.owes_room = true;
            }
            Entry::ToolResult(_) | Entry::Observation(_) if self.entries > self.elided => {
                self.results.push_back(Kept {
                    number: self.entries,
                    bytes: conversation::bytes(entry, options, ResultBody::Full),
                    blanked_bytes: conversation::bytes(entry, options, ResultBody::Elided),
                });
            }
            Entry::Elided { up_to } => self.blank(*up_to),
            Entry::Concluding { .. } => self.owes_room = false,
            Entry::Prompt { .. }
            | Entry::ToolResult(_)
            | Entry::Observation(_)
            | Entry::Feedback { .. }
            | Entry::Failed { .. }
            | Entry::Started { .. }
            | Entry::Lost { .. }
            | Entry::SentBefore { .. }
            | Entry::Switched { .. }
            | Entry::Stopped { .. }
            | Entry::Ended { .. } => {}
        }
        let body = if self.entries <= self.elided { ResultBody::Elided } else { ResultBody::Full };
        self.bytes += conversation::bytes(entry, options, body);
    }

    fn blank(&mut self, up_to: u32) {
        self.owes_room = false;
        self.elided = self.elided.max(up_to);
        while let Some(result) = self.results.pop_front_if(|result| result.number <= up_to) {
            self.bytes = (self.bytes + result.blanked_bytes).saturating_sub(result.bytes);
        }
    }

    /// Results up to this entry number are blanked.
    pub fn elided(&self) -> u32 {
        self.elided
    }

    /// Tokens of the next request, as far as one can tell before it is sent.
    pub fn estimate(&self, tools: ToolBinding) -> u64 {
        self.rate.tokens_of(self.request_bytes(tools))
    }

    fn request_bytes(&self, tools: ToolBinding) -> u64 {
        match tools {
            ToolBinding::Bound => self.bytes + self.tools_bytes,
            ToolBinding::Unbound => self.bytes,
        }
    }

    /// Tokens that a request may have in a window of so many; 0 when nobody says. A refused request proves that the
    /// window is smaller than it.
    pub fn budget(&self, context_window: u64) -> u64 {
        let told = if context_window == 0 { DEFAULT_WINDOW } else { context_window };
        let window = self.refused_tokens.map_or(told, |refused| refused.min(told));
        window - window / RESERVE
    }

    /// Whether the last refusal has had no consequence yet.
    pub(super) fn owes_room(&self) -> bool {
        self.owes_room
    }

    /// Whether the provider has refused a request since the last answer.
    fn was_refused(&self) -> bool {
        self.refusals > 0
    }

    /// The last result to blank so that no more than `target` tokens are left, or as few as can be; `None` when
    /// blanking gains nothing. Without `all` the results of the last answer stay.
    fn step(&self, target: u64, tools: ToolBinding, elidable: Elidable) -> Option<u32> {
        let before = self.request_bytes(tools);
        let mut bytes = before;
        let mut up_to = None;
        let end = match elidable {
            Elidable::All => u32::MAX,
            Elidable::BeforeLastAnswer => self.last_answer,
        };
        for result in self.results.iter().take_while(|result| result.number < end) {
            if self.rate.tokens_of(bytes) <= target && bytes < before {
                break;
            }
            bytes = (bytes + result.blanked_bytes).saturating_sub(result.bytes);
            up_to = Some(result.number);
        }
        up_to.filter(|_| bytes < before)
    }
}

/// What has to be written down before the model is asked again, if the conversation has become too long for it.
///
/// The oldest results are blanked; where that is not enough, or did not help, the conclusion is forced. For a
/// conclusion, after which nothing comes, the last answer's results may go, too. A strategy without tools has nothing
/// to give up.
pub(super) fn make_room(state: &State) -> Option<Vec<Entry>> {
    let (window, plan) = (state.window(), state.plan());
    let tools = state.tool_binding();
    let told = plan.providers.get(state.provider()).map_or(0, |provider| provider.context_window);
    let budget = window.budget(told);
    let fits = window.estimate(tools) <= budget && !window.owes_room;
    if fits || !plan.strategy.uses_tools() {
        return None;
    }
    if state.concluding().is_some() {
        let target = if window.owes_room { 0 } else { budget };
        return window.step(target, tools, Elidable::All).map(|up_to| vec![Entry::Elided { up_to }]);
    }
    let first = window.refusals < 2;
    if let Some(up_to) = window.step(budget / STEP, tools, Elidable::BeforeLastAnswer).filter(|_| first) {
        return Some(vec![Entry::Elided { up_to }]);
    }
    // A window that nobody has told may be larger than assumed: then the provider has the last word.
    let known = told > 0 || window.was_refused();
    let content = plan.conclusion_prompt.clone();
    known.then(|| vec![Entry::Concluding { reason: StopReason::ContextWindow }, Entry::Feedback { content }])
}

#[cfg(test)]
mod tests;
