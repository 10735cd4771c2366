//! Inherits the sessions of a dead worker before their leases expire: the worker that replaces it continues them.
//!
//! The composition root knows which workers are dead. The store compares the owner, so a session that another worker
//! has claimed meanwhile stays with it. The message of such a session is still with the dead worker: the run adopts it
//! when it is redelivered.

use std::time::Duration;

use tracing::Instrument as _;

use super::dispatcher::Dispatcher;
use super::holder::Leased;
use crate::ports::{Claim, ClaimRequest, Inherited, Model as _, Sessions};
use crate::trace::messaging;
use crate::world::World;
use tarsy_core::ids::{SessionId, WorkerId};

/// The time between two questions whether the LLM service serves.
const SERVING_INTERVAL: Duration = Duration::from_millis(500);
/// A service that does not answer within this time is unavailable.
const SERVING_TIMEOUT: Duration = Duration::from_secs(5);

impl<W: World> Dispatcher<W> {
    /// The sessions of these dead workers, at most `limit`. Empty when the store does not answer: then their leases
    /// expire.
    pub async fn inherited(&self, predecessors: &[WorkerId], limit: usize) -> Vec<Inherited> {
        if predecessors.is_empty() {
            return Vec::new();
        }
        match self.ports.sessions.inherited(predecessors.to_vec()).await {
            Ok(mut sessions) => {
                sessions.truncate(limit);
                sessions
            }
            Err(error) => {
                tracing::warn!(
                    "sessions of the worker before this one not found, their leases have to expire: {error}"
                );
                Vec::new()
            }
        }
    }

    /// Waits until the LLM service serves: without it a session would be released again. `false`: not within a lease,
    /// or the worker drains.
    pub async fn may_inherit(&self) -> bool {
        let serves = async {
            while !self.serves().await {
                tokio::time::sleep(SERVING_INTERVAL).await; // pacing of questions
            }
        };
        tokio::select! {
            biased;
            () = self.shutdown.drain.cancelled() => false,
            serves = tokio::time::timeout(self.lease(), serves) => serves.is_ok(),
        }
    }

    async fn serves(&self) -> bool {
        tokio::time::timeout(SERVING_TIMEOUT, self.ports.model.serving())
            .await
            .unwrap_or(false)
    }

    /// Continues a session of one of these dead workers until it ends or is released. The caller holds a slot for it.
    pub async fn inherit(&self, inherited: Inherited, predecessors: Vec<WorkerId>) {
        let span = messaging::inherit(&inherited);
        self.claim_inherited(inherited.session_id, predecessors)
            .instrument(span)
            .await;
    }

    async fn claim_inherited(&self, session: SessionId, predecessors: Vec<WorkerId>) {
        if self.shutdown.drain.is_cancelled() {
            return;
        }
        let request = ClaimRequest {
            predecessors,
            ..self.claim_request()
        };
        let why = match self.claim(session, request).await {
            Ok((Claim::Taken(claimed), asked_at)) => {
                let leased = Leased::resumed(claimed, asked_at);
                // The run has no message yet: it acknowledges the one that is redelivered to it, if any.
                Box::pin(self.run(leased, None)).await;
                return;
            }
            Ok((Claim::Busy(_), _)) => "another worker has claimed it".to_owned(),
            Ok((Claim::Waiting, _)) => "it waits for a person".to_owned(),
            Ok((Claim::Ended { .. }, _)) => "it has ended".to_owned(),
            Ok((Claim::Incompatible | Claim::Unknown, _)) => {
                "this version cannot run it".to_owned()
            }
            Err(error) => error.to_string(),
        };
        tracing::info!(session_id = %session, "session of the worker before this one not taken over: {why}");
    }
}
