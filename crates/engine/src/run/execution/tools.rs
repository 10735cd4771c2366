//! The tool calls of one decision.

use tokio::time::Instant;

use super::Execution;
use super::approvals::Freeze;
use crate::run::control::Interrupted;
use crate::run::instruments;
use crate::run::tool_calls::Batch;
use crate::world::World;
use tarsy_core::execution::entry::{Entry, ToolCall};

impl<W: World> Execution<W> {
    /// Runs the calls of one decision and commits their results.
    pub(super) async fn run_tools(&mut self, calls: Vec<ToolCall>) -> Result<(), Interrupted> {
        self.control.permit()?;
        let remaining = self.remaining();
        let deadline = Instant::now() + remaining;
        // A call that may change something is recorded before it is sent: after a crash it counts as lost and is not
        // sent again.
        if let [call] = calls.as_slice()
            && !call.read_only
            && !remaining.is_zero()
        {
            match self.freeze().await? {
                Some(Freeze::None) => {}
                Some(Freeze::Active) => return self.refuse_frozen(call).await,
                None => return Ok(()),
            }
            self.append(vec![Entry::Started {
                call_id: call.id.clone(),
            }])
            .await?;
        }
        self.send(calls, deadline).await
    }

    /// Sends calls and commits their results. One that may change something has to be recorded as started before.
    pub(super) async fn send(
        &mut self,
        calls: Vec<ToolCall>,
        deadline: Instant,
    ) -> Result<(), Interrupted> {
        let batch = Batch {
            tools: &*self.ports.tools,
            journal: &*self.ports.journal,
            lease: self.lease,
            control: &self.control,
            state: &self.state,
            deadline,
            soft_deadline: self.time.map(|time| time.soft),
        };
        let requested = calls.len();
        let began = Instant::now();
        let Some(performed) = batch.run(calls).await? else {
            return Ok(());
        };
        instruments::tools_ended(
            self.ids(),
            self.state.iteration(),
            requested,
            &performed.tool_calls,
            began.elapsed(),
        );
        self.commit(performed).await
    }
}
