//! The times that messages state.

use chrono::{DateTime, Utc};

use super::State;
use crate::clock::StatedTime;
use crate::execution::entry::{About, Entry, Role};

impl State {
    /// The time that the message of an entry states; `None` for a plan without a clock, and for most entries.
    pub(super) fn stated_time(
        &self,
        entry: &Entry,
        at: Option<DateTime<Utc>>,
    ) -> Option<StatedTime> {
        let clock = self.plan.clock?;
        let at = at?;
        let shown = clock.shown(at);
        match entry {
            Entry::Prompt {
                role: Role::User, ..
            } => Some(StatedTime::Opening { clock, at: shown }),
            Entry::ToolResult(_) | Entry::Observation(_) => {
                let turns = self
                    .plan
                    .limits
                    .max_iterations
                    .saturating_sub(self.iteration);
                self.is_first_result()
                    .then(|| StatedTime::of_result(shown, turns))
            }
            Entry::AlertUpdated(_) => Some(StatedTime::FirstLine { at: shown }),
            Entry::Feedback {
                content,
                about: None,
            } => {
                let is_request_to_conclude =
                    self.concluding.is_some() && *content == self.plan.conclusion_prompt;
                is_request_to_conclude.then_some(StatedTime::FirstLine { at: shown })
            }
            Entry::Prompt { .. }
            | Entry::Feedback {
                about: Some(About::Answer(_) | About::Waited),
                ..
            }
            | Entry::Answer(_)
            | Entry::Failed { .. }
            | Entry::Started { .. }
            | Entry::Lost { .. }
            | Entry::SentBefore { .. }
            | Entry::Switched { .. }
            | Entry::Concluding { .. }
            | Entry::Elided { .. }
            | Entry::Summarised(_)
            | Entry::Stopped { .. }
            | Entry::Ended { .. } => None,
        }
    }

    /// Whether the last answer has no result yet.
    fn is_first_result(&self) -> bool {
        let since = self
            .entries
            .iter()
            .rev()
            .take_while(|entry| entry.answer().is_none());
        since.into_iter().all(|entry| entry.result().is_none())
    }

    /// The message about a long pause before `now`; `None` after a short one.
    pub fn after_pause(&self, now: DateTime<Utc>) -> Option<Entry> {
        let content = self.plan.clock?.after_pause(self.last_entry_at?, now)?;
        Some(Entry::Feedback {
            content,
            about: Some(About::Waited),
        })
    }
}
