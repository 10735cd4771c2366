//! Implements the port `Queue` for the sweeper: finds the message of an alert, and requeues a lost one.

use super::claims::belongs_to;
use crate::bus::connection::Nats;
use crate::bus::headers::{self, SESSION_ID};
use crate::bus::names::{ALERTS, MessageKind, Priority};
use crate::bus::stream::get::message_at;
use crate::engine::ports::{BrokerUnavailable, IdleAlert, Queue};
use crate::investigation::ids::SessionId;

impl Queue for Nats {
    async fn holds(&self, alert: SessionId, stream_sequence: u64) -> Result<bool, BrokerUnavailable> {
        // A stream that was lost and filled again has another alert under the same sequence.
        let message = message_at(self, ALERTS, stream_sequence).await?;
        Ok(message.is_some_and(|message| belongs_to(alert, &message)))
    }

    async fn requeue(&self, alert: &IdleAlert) -> Result<u64, BrokerUnavailable> {
        let id = alert.alert_id;
        let Some(body) = alert.body.clone() else {
            return Err(BrokerUnavailable(format!("alert {id} cannot be queued again: its body was not kept")));
        };
        let mut copy = headers::for_copy_of_stored(&alert.headers);
        copy.insert(SESSION_ID, id.to_string());
        let published = self.enqueue(queue_subject(&alert.subject), copy, body).await;
        let published = published.map(|published| published.sequence);
        published.map_err(|error| BrokerUnavailable(format!("alert {id} is not queued again: {error}")))
    }
}

/// The subject that an alert was published on, if the queue accepts it, else the subject of alerts with normal
/// priority.
pub(crate) fn queue_subject(subject: &str) -> String {
    match Priority::of_subject(subject) {
        Some(_) => subject.to_owned(),
        None => Priority::Normal.subject(MessageKind::Alert),
    }
}
