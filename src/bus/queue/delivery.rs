//! The answer to a delivery: implements the port `Delivery`.

use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::{Client, Request, Subject};
use bytes::Bytes;

use crate::engine::ports::{BrokerUnavailable, Delivery};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A claimed message, to be answered. Cloning it is cheap; a redelivery of the same alert is another one.
///
/// Every answer is confirmed by the server. That proves that the server saw it, never that this process owned the
/// alert: only the store knows.
#[derive(Clone, Debug)]
pub struct JetStreamDelivery {
    client: Client,
    reply: Subject,
}

impl JetStreamDelivery {
    pub(super) fn new(client: Client, reply: Subject) -> Self {
        Self { client, reply }
    }

    async fn answer(&self, what: &str, payload: Bytes) -> Result<(), BrokerUnavailable> {
        let request = Request::new().payload(payload).timeout(Some(ANSWER_TIMEOUT));
        // The outer bound also covers a connection that takes no more commands.
        match tokio::time::timeout(2 * ANSWER_TIMEOUT, self.client.send_request(self.reply.clone(), request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(BrokerUnavailable(format!("{what} was not confirmed: {error}"))),
            Err(_) => Err(BrokerUnavailable(format!("{what} was not sent"))),
        }
    }

    /// Gives the message back without waiting for the answer; `flush` the connection afterwards.
    pub(super) async fn give_back(&self) {
        if let Err(error) = self.client.publish(self.reply.clone(), AckKind::Nak(None).into()).await {
            tracing::warn!(%error, "an alert could not be given back: it comes again after its ack_wait");
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
        // `AckKind::Term` has no room for the reason that the server puts into its advisory.
        let reason = reason.replace(['\r', '\n'], " ");
        self.answer("term", Bytes::from(format!("+TERM {reason}"))).await
    }
}
