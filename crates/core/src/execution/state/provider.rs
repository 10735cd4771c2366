//! The provider that is asked, and the switch to the next one.

use super::{Failures, State, Timeouts};

impl State {
    /// Index of the current provider in the plan.
    pub fn provider(&self) -> usize {
        self.provider
    }

    /// Index of the provider that takes over when the current one has failed.
    pub(crate) fn next_provider(&self) -> Option<usize> {
        let next = self.provider + 1;
        (next < self.plan.providers.len()).then_some(next)
    }

    /// Switches to another provider. The failures of the former one say nothing about it.
    pub(super) fn switch(&mut self, provider: usize) {
        (self.provider, self.provider_is_new) = (provider, true);
        (self.failures, self.timeouts) = (Failures::default(), Timeouts::default());
        (self.empty_answers, self.cut_answers) = (0, 0);
        self.refused_tools.clear();
    }
}
