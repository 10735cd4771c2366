//! Answers a delivery with ack, nak, term or an in-progress heartbeat: implements the port `Delivery`.

use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::{Client, Request, Subject};
use bytes::Bytes;

use crate::engine::ports::{BrokerUnavailable, Delivery};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A claimed message to be answered. A redelivery of the same alert is another one. Cheap to clone.
///
/// The server confirms every answer. The confirmation proves that the server has the answer, not that this process owns
/// the alert: only the store knows the owner.
#[derive(Clone, Debug)]
pub struct JetStreamDelivery {
    pub(super) client: Client,
    pub(super) reply: Subject,
}

impl JetStreamDelivery {
    async fn answer(&self, kind: &str, payload: Bytes) -> Result<(), BrokerUnavailable> {
        let request = Request::new().payload(payload).timeout(Some(ANSWER_TIMEOUT));
        // The outer timeout also covers a connection that accepts no more commands.
        match tokio::time::timeout(2 * ANSWER_TIMEOUT, self.client.send_request(self.reply.clone(), request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(BrokerUnavailable(format!("{kind} was not confirmed: {error}"))),
            Err(_) => Err(BrokerUnavailable(format!("{kind} was not sent"))),
        }
    }

    /// Releases the message with a nak that is not confirmed; `flush` the connection afterwards.
    pub(super) async fn release(&self) {
        if let Err(error) = self.client.publish(self.reply.clone(), AckKind::Nak(None).into()).await {
            tracing::warn!(%error, "alert not released: it comes again after its ack_wait");
        }
    }
}

impl Delivery for JetStreamDelivery {
    async fn progress(&self) -> Result<(), BrokerUnavailable> {
        self.answer("progress", AckKind::Progress.into()).await
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
        self.answer("term", Bytes::from(format!("+TERM {reason}"))).await
    }
}
