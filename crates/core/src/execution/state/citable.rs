//! The event numbers that an execution may cite.

use std::collections::BTreeSet;

use super::State;
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
}
