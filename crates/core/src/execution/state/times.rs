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
        let at = clock.shown(at?);
        if entry.result().is_some() {
            let max = self.plan.limits.max_iterations;
            let turns = max.saturating_sub(self.iteration);
            return self
                .is_first_result()
                .then(|| StatedTime::of_result(at, turns));
        }
        if let Entry::Prompt { role, .. } = entry {
            return (*role == Role::User).then_some(StatedTime::Opening { clock, at });
        }
        let is_request_to_conclude = self.concluding.is_some()
            && matches!(entry, Entry::Feedback { content, about: None } if *content == self.plan.conclusion_prompt);
        let is_dated = is_request_to_conclude || matches!(entry, Entry::AlertUpdated(_));
        is_dated.then_some(StatedTime::FirstLine { at })
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
