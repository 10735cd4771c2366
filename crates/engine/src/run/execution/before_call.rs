//! Appends entries that the model needs before its next call: updates of the alert, and the time that has passed.
//!
//! Every checkpoint and renewal returns the number of updates, and the run reads them only if there are new ones. The
//! number of the last update is in the journal of the execution, so the model gets each update once, from any worker.

use super::Execution;
use crate::ports::Journal;
use crate::run::control::{Interrupted, STORE_BOUND};
use crate::run::performed::now;
use crate::world::World;
use tarsy_core::alert::AlertStatus;
use tarsy_core::alert::policy::OnResolved;
use tarsy_core::alert_update;
use tarsy_core::execution::decide::Decision;
use tarsy_core::execution::entry::{Entry, StopReason};

/// Whether the model is called next, perhaps after the prompt that forces its conclusion.
pub(super) fn is_before_call(decision: &Decision) -> bool {
    match decision {
        Decision::CallModel(_) => true,
        Decision::Append(entries) => entries
            .iter()
            .any(|entry| matches!(entry, Entry::Concluding { .. })),
        Decision::RunTools(_)
        | Decision::Await(_)
        | Decision::Wait(_)
        | Decision::Summarise(_)
        | Decision::Done(_) => false,
    }
}

impl<W: World> Execution<W> {
    /// Appends the updates of the alert that the journal does not have. Returns whether there were any.
    pub(super) async fn append_updates(&mut self) -> Result<bool, Interrupted> {
        let known = self.state.known_updates();
        if self.control.updates() <= known {
            return Ok(false);
        }
        let read = self
            .ports
            .journal
            .alert_updates(self.lease.session_id, known);
        let Some(entry) = alert_update::entry(&self.control.within(STORE_BOUND, read).await?)
        else {
            return Ok(false);
        };
        let concludes = self.concludes_after(&entry);
        let mut entries = vec![entry];
        if concludes {
            // An entry, so that every worker that replays the journal decides the same.
            entries.push(Entry::Stopped {
                reason: StopReason::AlertResolved,
            });
        }
        self.append_before_call(entries).await?;
        Ok(true)
    }

    /// Appends that much time has passed since the last entry. Returns whether it has.
    pub(super) async fn append_pause(&mut self) -> Result<bool, Interrupted> {
        let Some(entry) = self.state.after_pause(now()) else {
            return Ok(false);
        };
        self.append_before_call(vec![entry]).await?;
        Ok(true)
    }

    async fn append_before_call(&mut self, mut entries: Vec<Entry>) -> Result<(), Interrupted> {
        if self.state.concluding().is_some() {
            // The request to conclude has to be the last message.
            entries.push(Entry::Feedback {
                content: self.state.plan().conclusion_prompt.clone(),
                about: None,
            });
        }
        self.append(entries).await
    }

    /// Whether the next answer is the last one, because the alert is resolved. An agent without tools has only one.
    fn concludes_after(&self, entry: &Entry) -> bool {
        let is_resolved = matches!(entry, Entry::AlertUpdated(updated) if updated.status == Some(AlertStatus::Resolved));
        let is_open = self.state.stopped().is_none() && self.state.concluding().is_none();
        is_resolved
            && is_open
            && self.on_resolved == OnResolved::Conclude
            && self.state.plan().strategy.uses_tools()
    }
}
