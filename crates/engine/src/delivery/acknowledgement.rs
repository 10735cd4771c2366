//! The answer to a message of the queue. It only says whether the message is still needed: Postgres decides who works
//! on its alert.

use std::time::Duration;

use crate::ports::{DeadReason, Delivery};
use tarsy_core::ids::SessionId;

/// A worker's answer to a message of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledgement {
    Ack,
    /// The alert has become a dead letter: its message is never redelivered.
    Term(DeadReason),
    /// The message is redelivered after this time.
    Nak(Duration),
    /// Sends nothing: the settler answers, the run answers a later delivery of its session, or the lease is lost.
    Skip,
}

impl Acknowledgement {
    /// Sends the answer. A message whose answer is lost is redelivered and finds its disposition.
    pub(crate) async fn send<D: Delivery>(self, id: SessionId, delivery: &D) {
        let sent = match self {
            Self::Ack => delivery.ack().await,
            Self::Term(reason) => delivery.term(reason.as_str()).await,
            Self::Nak(delay) => delivery.nak(delay).await,
            Self::Skip => Ok(()),
        };
        if let Err(error) = sent {
            tracing::warn!(session_id = %id, "message not acknowledged: {error}");
        }
    }
}

/// Adds jitter of up to half of the delay, so that many messages are not redelivered at once.
pub(crate) fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 2.0)
}
