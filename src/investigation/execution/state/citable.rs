//! The event numbers that an execution may cite.

use std::collections::BTreeSet;

use super::State;
use crate::investigation::execution::cited_events::cited;
use crate::investigation::plan::ResultForm;

impl State {
    /// The event numbers that an execution may cite: those of its own results and those that its context cites. `None`
    /// for a session that began before results had numbers.
    pub(crate) fn citable(&self) -> Option<BTreeSet<u64>> {
        match self.plan().result_form {
            ResultForm::Bare => None,
            ResultForm::Indented => {
                let known = match (&self.plan().citable, self.context()) {
                    (Some(of_investigation), _) => of_investigation.clone(),
                    (None, context) => self.events().chain(context.map(cited).unwrap_or_default()).collect(),
                };
                Some(known.into_iter().map(u64::from).collect())
            }
        }
    }
}
