//! The event numbers that an execution may cite.

use std::collections::BTreeSet;

use super::State;
use crate::built_in::BuiltInTool;
use crate::execution::cited_events::cited;
use crate::execution::entry::Entry;
use crate::plan::ResultForm;

impl State {
    /// The event numbers that an execution may cite: those of its own results, and those that its context and the
    /// answers of its sub-agents cite. `None` for a session that began before results had numbers.
    pub(crate) fn citable(&self) -> Option<BTreeSet<u64>> {
        if self.plan().result_form == ResultForm::Bare {
            return None;
        }
        let known = match &self.plan().citable {
            Some(of_investigation) => of_investigation.clone(),
            None => self
                .events()
                .chain(self.context().map(cited).unwrap_or_default())
                .chain(self.answers_of_sub_agents().flat_map(cited))
                .collect(),
        };
        Some(known.into_iter().map(u64::from).collect())
    }

    /// The answers of sub-agents, as the model has them.
    pub(crate) fn answers_of_sub_agents(&self) -> impl Iterator<Item = &str> {
        let results = self.entries.iter().filter_map(Entry::result);
        results
            .filter(|result| result.spent.is_some())
            .map(|result| result.content.as_str())
    }

    /// The event numbers of records of earlier investigations and of skills, those of sub-agents among them. They may
    /// be cited, and prove nothing about now.
    pub(crate) fn sourceless_events(&self) -> BTreeSet<u64> {
        self.entries
            .iter()
            .zip(&self.options)
            .filter(|(entry, _)| {
                let result = entry.result();
                result.is_some_and(|result| BuiltInTool::is_no_source(&result.tool))
            })
            .filter_map(|(_, options)| options.event)
            .chain(self.spent().sourceless.iter().copied())
            .map(u64::from)
            .collect()
    }
}
