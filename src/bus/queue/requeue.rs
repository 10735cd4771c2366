//! The stream of alerts for the sweeper: implements the port `Queue`.

use super::claims::is_of;
use crate::bus::connection::Nats;
use crate::bus::headers::{self, SESSION_ID};
use crate::bus::names::{ALERTS, MessageKind, Priority};
use crate::bus::timeline::stream_get::message_at;
use crate::engine::ports::{BrokerUnavailable, IdleAlert, Queue};
use crate::investigation::ids::SessionId;

/// Looks for messages of the queue, and puts lost ones into it again.
#[derive(Clone, Debug)]
pub struct JetStreamQueue {
    nats: Nats,
}

impl JetStreamQueue {
    /// The queue on this connection.
    pub fn new(nats: &Nats) -> Self {
        Self { nats: nats.clone() }
    }
}

impl Queue for JetStreamQueue {
    async fn holds(&self, alert: SessionId, stream_sequence: u64) -> Result<bool, BrokerUnavailable> {
        // A stream that was lost and filled again has somebody else's alert under the same sequence.
        let message = message_at(&self.nats, ALERTS, stream_sequence).await;
        let message = message.map_err(|error| BrokerUnavailable(error.to_string()))?;
        Ok(message.is_some_and(|message| is_of(alert, &message)))
    }

    async fn requeue(&self, alert: &IdleAlert) -> Result<u64, BrokerUnavailable> {
        let id = alert.alert_id;
        let Some(body) = alert.body.clone() else {
            return Err(BrokerUnavailable(format!("alert {id} cannot be queued again: its body was not kept")));
        };
        let mut copy = headers::for_copy_of_stored(&alert.headers);
        copy.insert(SESSION_ID, id.to_string());
        let published = self.nats.queue(queue_subject(&alert.subject), copy, body).await;
        let published =
            published.map_err(|error| BrokerUnavailable(format!("alert {id} is not queued again: {error}")))?;
        Ok(published.sequence)
    }
}

/// The subject that an alert came on, if the queue takes it; else the one for an alert of which nothing is known.
pub(crate) fn queue_subject(subject: &str) -> String {
    match Priority::of_subject(subject) {
        Some(_) => subject.to_owned(),
        None => Priority::Normal.subject(MessageKind::Alert),
    }
}
