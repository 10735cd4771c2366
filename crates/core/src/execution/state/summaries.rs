//! Long results, their summaries, and whether the model can read them whole.

use super::State;
use crate::execution::entry::{Entry, Summary};
use crate::execution::summaries::{LongResult, in_place};
use crate::plan::Strategy;
use crate::read_result;
use crate::readable::cut::ReadBack;

impl State {
    /// The results since the last answer that need a summary.
    pub(crate) fn long_results(&self) -> &[LongResult] {
        &self.long_results
    }

    /// The way in which the model can read the whole result of an entry. A part that it has read is no whole result.
    pub(super) fn read_back(&self, entry: &Entry) -> ReadBack {
        let is_whole = entry
            .result()
            .is_some_and(|result| result.tool != read_result::TOOL);
        if is_whole {
            read_result::read_back(&self.plan)
        } else {
            ReadBack::No
        }
    }

    /// Puts a summary in the place of its result.
    pub(super) fn summarise(&mut self, summary: &Summary) {
        self.usage = self.usage.plus(summary.usage);
        self.long_results
            .retain(|long| long.call_id != summary.call_id);
        if summary.content.is_empty() {
            return;
        }
        let at = self.entries.iter().rposition(|entry: &Entry| {
            entry
                .result()
                .is_some_and(|result| result.call_id == summary.call_id)
        });
        let Some(at) = at else {
            return;
        };
        let next = self.entries.len();
        if let (Some(entry), Some(options)) = (self.entries.get(at), self.options.get_mut(at)) {
            options.summary = Some(next);
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            self.window.replace(
                number,
                &in_place(entry, summary, options.read_back),
                *options,
            );
        }
        if self.plan.strategy == Strategy::React {
            self.untrusted.add(&summary.content);
        }
    }
}
