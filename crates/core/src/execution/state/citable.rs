//! The event numbers that an execution may cite.

use std::collections::BTreeSet;

use super::State;
use crate::built_in::BuiltInTool;
use crate::execution::cited_events::cited;
use crate::plan::ResultForm;

impl State {
    /// The event numbers that an execution may cite: those of its own results and those that its context cites. `None`
    /// for a session that began before results had numbers.
    pub(crate) fn citable(&self) -> Option<BTreeSet<u64>> {
        if self.plan().result_form == ResultForm::Bare {
            return None;
        }
        let known = match &self.plan().citable {
            Some(of_investigation) => of_investigation.clone(),
            None => self
                .events()
                .chain(self.context().map(cited).unwrap_or_default())
                .collect(),
        };
        Some(known.into_iter().map(u64::from).collect())
    }

    /// The event numbers of records of earlier investigations and of skills. They may be cited, and prove nothing about
    /// now.
    pub(crate) fn sourceless_events(&self) -> BTreeSet<u64> {
        self.entries
            .iter()
            .zip(&self.options)
            .filter(|(entry, _)| {
                let result = entry.result();
                result.is_some_and(|result| BuiltInTool::is_no_source(&result.tool))
            })
            .filter_map(|(_, options)| options.event)
            .map(u64::from)
            .collect()
    }
}
