//! Answers a delivery with ack, nak, term or an in-progress heartbeat: implements the port `Delivery`.

use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::{Client, Request, RequestError, RequestErrorKind, Subject};
use bytes::Bytes;

use tarsy_engine::backoff::Backoff;
use tarsy_engine::ports::{BrokerUnavailable, Delivery};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    max: Duration::from_millis(500),
};
/// The word of a heartbeat, which is not sent again: the next renewal sends one.
const PROGRESS: &str = "progress";

/// A claimed message to be answered. A redelivery of the same alert is another one. Cheap to clone.
///
/// The server confirms every answer. The confirmation proves that the server has the answer, not that this process owns
/// the alert: only the store knows the owner.
#[derive(Clone, Debug)]
pub struct JetStreamDelivery {
    pub(crate) client: Client,
    pub(crate) reply: Subject,
}

impl JetStreamDelivery {
    async fn answer(&self, kind: &str, payload: Bytes) -> Result<(), BrokerUnavailable> {
        let answered = async {
            let mut refusals = 0;
            loop {
                let request = Request::new()
                    .payload(payload.clone())
                    .timeout(Some(ANSWER_TIMEOUT));
                match self.client.send_request(self.reply.clone(), request).await {
                    // A cluster elects the consumer's leader: no server has the answer, and it may be sent again.
                    Err(error) if self.may_be_elected(&error) && kind != PROGRESS => {
                        tokio::time::sleep(BACKOFF.delay(refusals)).await;
                        refusals += 1;
                    }
                    Err(error) => {
                        return Err(BrokerUnavailable(format!(
                            "{kind} was not confirmed: {error}"
                        )));
                    }
                    Ok(_) => return Ok(()),
                }
            }
        };
        // The outer timeout also covers a connection that accepts no more commands.
        match tokio::time::timeout(2 * ANSWER_TIMEOUT, answered).await {
            Ok(answered) => answered,
            Err(_) => Err(BrokerUnavailable(format!(
                "{kind} was not confirmed in time"
            ))),
        }
    }

    /// Whether the cluster may be electing a leader. Without a cluster, this error means that the consumer is missing.
    fn may_be_elected(&self, error: &RequestError) -> bool {
        let is_clustered = self
            .client
            .server_info()
            .cluster
            .is_some_and(|name| !name.is_empty());
        is_clustered && error.kind() == RequestErrorKind::NoResponders
    }

    /// Releases the message with a nak that is not confirmed; `flush` the connection afterwards.
    pub(super) async fn release(&self) {
        if let Err(error) = self
            .client
            .publish(self.reply.clone(), AckKind::Nak(None).into())
            .await
        {
            tracing::warn!(%error, "alert not released: it comes again after its ack_wait");
        }
    }
}

impl Delivery for JetStreamDelivery {
    async fn progress(&self) -> Result<(), BrokerUnavailable> {
        self.answer(PROGRESS, AckKind::Progress.into()).await
    }

    async fn ack(&self) -> Result<(), BrokerUnavailable> {
        self.answer("ack", AckKind::Ack.into()).await
    }

    async fn nak(&self, delay: Duration) -> Result<(), BrokerUnavailable> {
        let delay = (!delay.is_zero()).then_some(delay);
        self.answer("nak", AckKind::Nak(delay).into()).await
    }

    async fn term(&self, reason: &str) -> Result<(), BrokerUnavailable> {
        // `AckKind::Term` cannot carry the reason, which the server puts into its advisory.
        let reason = reason.replace(['\r', '\n'], " ");
        self.answer("term", Bytes::from(format!("+TERM {reason}")))
            .await
    }
}
