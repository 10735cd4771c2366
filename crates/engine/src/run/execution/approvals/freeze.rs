//! The freeze of all changes: it holds for every call that may change something, whether a person decides about it or
//! not. A run without such calls reads nothing for it.

use crate::run::control::Interrupted;
use crate::run::execution::Execution;
use crate::run::tool_calls;
use crate::world::World;
use tarsy_core::execution::approvals;
use tarsy_core::execution::entry::ToolCall;

/// The freeze of all changes, as operators begin and end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run::execution) enum Freeze {
    None,
    Active,
}

impl<W: World> Execution<W> {
    /// Reads whether operators have frozen all changes. `None`: the run has to stop.
    pub(in crate::run::execution) async fn freeze(&self) -> Result<Option<Freeze>, Interrupted> {
        let outcomes = self.outcomes().await?;
        Ok(outcomes.map(|outcomes| {
            if outcomes.is_frozen {
                Freeze::Active
            } else {
                Freeze::None
            }
        }))
    }

    /// Appends the result of a call that needs no approval and is not sent while changes are frozen.
    pub(in crate::run::execution) async fn refuse_frozen(
        &mut self,
        call: &ToolCall,
    ) -> Result<(), Interrupted> {
        tracing::info!(session_id = %self.lease.session_id, execution_id = %self.id, call_id = call.id, "tool call not sent: all changes are frozen");
        tool_calls::not_run("frozen");
        let refused = approvals::frozen(&self.state, call);
        self.append(vec![refused]).await
    }
}
