//! The end of a request: the result of its call, or the call itself, which is sent at once after its start is
//! committed together with the approval.

use std::time::Duration;

use tokio::time::Instant;

use super::Judged;
use crate::ports::{Fit, ToolMatch, Tools as _};
use crate::run::control::Interrupted;
use crate::run::execution::Execution;
use crate::run::performed::{Performed, Written};
use crate::world::World;
use tarsy_core::approvals::CallHash;
use tarsy_core::execution::approvals;
use tarsy_core::execution::entry::{ApprovalEnded, ApprovalOutcome, Entry, ToolCall};

/// The pause before an unreachable server is asked again for its tools.
const SERVER_DELAY: Duration = Duration::from_secs(5);

/// The end of a request, as the store has it.
pub(super) enum Closing {
    /// The call may be sent, if its tool is still the one that people saw.
    Approved(ApprovalEnded),
    /// The call gets a result instead. The number is that of the last event in the snapshot.
    Unsent(ApprovalEnded, u32),
}

/// An approved call, compared with what people saw.
enum Compared {
    /// The call with the arguments that they saw.
    Same(ToolCall),
    Changed,
    /// The server does not answer, for this reason.
    Unavailable(String),
}

impl<W: World> Execution<W> {
    /// Commits the end of a request. `false`: the outcomes have to be read again.
    pub(super) async fn close(
        &mut self,
        judged: &Judged,
        closing: Closing,
    ) -> Result<bool, Interrupted> {
        match closing {
            Closing::Unsent(ended, seen) => self.close_unsent(&ended, Some(seen)).await,
            Closing::Approved(ended) => {
                // A draining worker begins no call; the next one reads the same outcome.
                self.control.permit()?;
                match self.compared(judged).await {
                    Compared::Same(call) => self.start(call, &ended).await,
                    Compared::Changed => {
                        let changed = ApprovalEnded {
                            outcome: ApprovalOutcome::ToolChanged,
                            ..ended
                        };
                        self.close_unsent(&changed, None).await
                    }
                    // Until the approval lapses, which the store says.
                    Compared::Unavailable(why) => {
                        tracing::warn!(session_id = %self.lease.session_id, execution_id = %self.id, tool = judged.tool.name, "approved call delayed: {why}");
                        // A stop is noticed by the loop of the execution.
                        Ok(self.control.pause(SERVER_DELAY).await?.is_none())
                    }
                }
            }
        }
    }

    /// Compares the call with what people saw: its arguments as they would be sent now, and its tool at the server.
    async fn compared(&self, judged: &Judged) -> Compared {
        let seen = self.state.entries().iter().rev().find_map(|entry| {
            if let Entry::ApprovalRequested(requested) = entry
                && requested.call_id == judged.call.id
            {
                Some(requested.call_sha256)
            } else {
                None
            }
        });
        let Fit::Arguments(arguments) = self.ports.tools.fit(&judged.call, &judged.tool).await
        else {
            return Compared::Changed;
        };
        if seen != Some(CallHash::new(&judged.tool, &arguments)) {
            return Compared::Changed;
        }
        match self.ports.tools.compare(&judged.tool).await {
            ToolMatch::Same => Compared::Same(ToolCall {
                arguments,
                ..judged.call.clone()
            }),
            ToolMatch::Changed => Compared::Changed,
            ToolMatch::Unavailable(why) => Compared::Unavailable(why),
        }
    }

    async fn close_unsent(
        &mut self,
        ended: &ApprovalEnded,
        seen: Option<u32>,
    ) -> Result<bool, Interrupted> {
        self.iteration.begin_anew(self.iteration_timeout());
        let performed = Performed {
            entries: approvals::ended(&self.state, ended),
            seen,
            ..Performed::default()
        };
        Ok(match Box::pin(self.write(performed)).await? {
            Written::Committed => true,
            Written::Undecided(_) => false,
        })
    }

    /// Records approval and start in one checkpoint, then sends the call.
    async fn start(&mut self, call: ToolCall, ended: &ApprovalEnded) -> Result<bool, Interrupted> {
        let performed = Performed {
            entries: approvals::ended(&self.state, ended),
            ..Performed::default()
        };
        if let Written::Undecided(why) = Box::pin(self.write(performed)).await? {
            tracing::info!(session_id = %self.lease.session_id, execution_id = %self.id, "approved call not started: {why}");
            return Ok(false);
        }
        // The time of the iteration begins with the sending.
        self.iteration.begin_anew(self.iteration_timeout());
        let deadline = Instant::now() + self.remaining();
        self.send(vec![call], deadline).await?;
        Ok(true)
    }
}
